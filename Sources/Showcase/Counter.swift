package import StateStore

/// The smallest domain: a number, and actions that change it.
package struct Counter: Domain {
    package struct State: StateType, Codable {
        var value = 0
        package init() {}
    }

    struct Add: Action {
        static let type = "counter/add"
        var amount: Int
    }

    struct Reset: Action {
        static let type = "counter/reset"
    }

    package init() {}

    package var reducer: some Reducer<State> {
        On(Add.self) { state, action throws(Rejection) in
            let (sum, isOverflow) = state.value.addingReportingOverflow(action.amount)
            guard !isOverflow else {
                throw Rejection("counter.overflow", "\(state.value) + \(action.amount) does not fit 64 bits")
            }
            state.value = sum
        }
        On(Reset.self) { state, _ in state.value = 0 }
    }
}
