import Dispatch

/// The baseline of a dispatch: it does what a dispatch of ReSwift 6.1 does, and no more.
///
/// The reducer runs on the caller's thread. A concurrent queue guards the flag that finds a dispatch inside the reducer; its
/// three `sync` calls are most of the cost, as in ReSwift.
final class DirectStore<State> {
    private(set) var state: State {
        didSet { for subscriber in subscribers { subscriber(oldValue, state) } }
    }
    private let reduce: (any DirectAction, State) -> State
    private let subscribers: [(State, State) -> Void] = []
    private var isDispatching = false
    private let guarding = DispatchQueue(label: "baseline", attributes: .concurrent)

    init(_ state: State, reduce: @escaping (any DirectAction, State) -> State) {
        self.state = state
        self.reduce = reduce
    }

    func dispatch(_ action: any DirectAction) {
        precondition(!guarding.sync { isDispatching }, "a reducer dispatches")
        guarding.sync(flags: .barrier) { isDispatching = true }
        let new = reduce(action, state)
        guarding.sync(flags: .barrier) { isDispatching = false }
        state = new
    }
}

protocol DirectAction {}
