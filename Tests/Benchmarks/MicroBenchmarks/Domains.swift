import StateStore

/// The smallest state there is.
struct Counter: Domain {
    struct State: StateType, Codable { var value = 0 }
    struct Add: Action {
        static let type = "counter/add"
        var amount: Int
    }

    var reducer: some Reducer<State> {
        On(Add.self) { state, action in state.value &+= action.amount }
    }
}

/// A table, in which a commit changes one entity of many.
struct Places: Domain {
    struct State: StateType {
        var places = EntityTable<Int, Place>()

        init() {}

        init(count: Int) {
            for id in 0..<count { places[id] = Place(x: 0, y: 0, label: "place \(id)") }
        }
    }
    struct Place: Codable, Equatable {
        var x: Double
        var y: Double
        var label: String
    }
    struct Move: Action {
        static let type = "places/move"
        var id: Int
        var x: Double
    }

    var reducer: some Reducer<State> {
        Entities("places", ids: "placeIDs", \.places)
        On(Move.self) { state, action in state.places.update(action.id) { $0.x = action.x } }
    }
}
