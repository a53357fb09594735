import Dispatch
import Foundation
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("A store in its own process", .timeLimit(.minutes(5)))
struct EmbeddedStoreTests {
    @Test("the cascade of an action that causes nothing is complete with its turn")
    func awaiting() throws {
        let threads = Collection<Bool>()
        let caller = ObjectIdentifier(Thread.current)
        let noting = Calling { threads.add(ObjectIdentifier(Thread.current) == caller) }
        let store = try Store(noting)

        let dispatched = try store.dispatch(Calling.Call(), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        #expect(dispatched.receipt?.version == 1)
        #expect(report.isComplete && report.caused.isEmpty && report.refused.isEmpty)
        #expect(threads.values == [true], "the turn runs on the thread of its caller")
        #expect(throws: DispatchError.self) { try store.dispatch(Sample.Add(amount: 1), awaiting: .cascade) }
    }

    @Test("a subscription that a reducer begins misses no commit")
    func subscribingInReducer() throws {
        let seen = Collection<Int>()
        let tokens = Collection<SubscriptionToken>()
        let box = Collection<Store<Plain.State>>()
        let subscribing = Calling { tokens.add(box.values[0].subscribe(\.other) { seen.add($0) }) }
        let store = try Store(subscribing)
        box.add(store)

        for _ in 0..<2 { try store.dispatch(Calling.Call()) }
        store.onQueue {}

        #expect(seen.values == [1, 2, 2], "the first subscriber gets both states, the second one gets the second")
    }
}

/// A domain whose reducer calls a function.
private struct Calling: Domain {
    struct Call: Action { static let type = "call" }

    let call: @Sendable () -> Void

    var reducer: some Reducer<Plain.State> {
        On(Call.self) { [call] state, _ in
            call()
            state.other += 1
        }
    }
}
