import TestSupport
import Testing

@testable import StateStore

@Suite("Dispatches through the store inside its own turn", .timeLimit(.minutes(5)))
struct DispatchInTurnTests {
    /// A store whose middleware dispatches 100 through the store behind each smaller amount that passes.
    private func dispatching() throws -> Store<Sample.State> {
        let store = UntypedStore(domain: try CompiledDomain(Sample()), now: { Timestamp(milliseconds: 0) }).typed(
            Sample.State.self)
        store.middleware = [
            Middleware { [weak store] action, _, next throws(Rejection) in
                guard let add = action as? Sample.Add, add.amount < 100 else { return try next(action) }
                // Before `next`, so that it is dispatched also where the reducer refuses the action.
                #expect(throws: Never.self) { try store?.dispatch(Sample.Add(amount: 100)) }
                try next(action)
            }
        ]
        return store
    }

    private func count(_ store: Store<Sample.State>) -> Int { store.state.count.value }

    @Test("what a middleware dispatches is a follow-up of its action")
    func middleware() throws {
        let store = try dispatching()

        let result = try store.dispatch(Sample.Add(amount: 1), awaiting: .cascade)
        let report = try #require(result.cascade)

        #expect(count(store) == 101)
        #expect(report.isComplete)
        #expect(report.caused.map(\.cause) == [result.receipt?.id])
    }

    @Test("what a middleware dispatches for a dry run, or for an action that is refused, is dropped")
    func dropped() throws {
        let store = try dispatching()
        let dryRun = Transaction.of(Sample.Add(amount: 1), purpose: .dryRun)

        _ = store.untyped.dryRun(dryRun)
        _ = store.submitNow(dryRun)
        #expect(throws: DispatchError.self) { try store.dispatch(Sample.Add(amount: -9)) }
        store.drain()

        #expect(count(store) == 0)
        #expect(store.version == 0)
    }

    @Test("what a creator dispatches is a follow-up, also where the creator makes no action", arguments: [true, false])
    func creator(makesAction: Bool) throws {
        let store = UntypedStore(domain: try CompiledDomain(Sample()), now: { Timestamp(milliseconds: 0) }).typed(
            Sample.State.self)

        let result = try store.dispatch(
            .creator { _, store throws(Rejection) in
                #expect(throws: Never.self) {
                    try store.dispatch(.batch([Sample.Add(amount: 10), Sample.Add(amount: 20)]))
                    try store.dispatch(Sample.Add(amount: 70), id: "mine")
                }
                return makesAction ? Sample.Add(amount: 1) : nil
            }, awaiting: .cascade)
        let report = try #require(result.cascade)

        #expect(count(store) == (makesAction ? 101 : 100))
        #expect((result.receipt != nil) == makesAction)
        #expect(report.caused.map { $0.types.count } == [2, 1])
        #expect(report.caused.last?.id == "mine")
    }
}
