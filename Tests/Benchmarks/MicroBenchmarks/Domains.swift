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

/// Tasks in an array of a state that is `Codable` as a whole, as one would write them first.
struct Tasks: Domain {
    struct State: StateType, Codable {
        var tasks: [Task] = []
        var filter = "all"

        init() {}

        init(count: Int) {
            tasks = (0..<count).map { Task(id: $0, title: "task number \($0)", isDone: false, note: nil) }
        }
    }
    struct Task: Codable {
        var id: Int
        var title: String
        var isDone: Bool
        var note: String?
    }
    struct Toggle: Action {
        static let type = "tasks/toggle"
        var index: Int
    }

    var reducer: some Reducer<State> {
        On(Toggle.self) { state, action in state.tasks[action.index].isDone.toggle() }
    }
}
