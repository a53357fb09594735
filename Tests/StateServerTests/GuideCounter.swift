import StateStore

struct Counter: Domain {
    struct State: StateType, Codable { var value = 0 }
    struct Add: Action { static let type = "counter/add"; var amount: Int }

    var reducer: some Reducer<State> {
        On(Add.self) { state, action throws(Rejection) in
            let (sum, isTooLarge) = state.value.addingReportingOverflow(action.amount)
            guard !isTooLarge else { throw Rejection("counter.overflow", "the counter holds no more than 64 bits") }
            state.value = sum
        }
    }
}
