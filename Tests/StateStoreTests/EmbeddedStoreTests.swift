import Dispatch
import Foundation
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("A store in its own process", .timeLimit(.minutes(5)))
struct EmbeddedStoreTests {
    @Test("a subscriber sees each state behind its beginning")
    func subscribing() throws {
        let store = try Store(Sample())
        let seen = Collection<Int>()
        let commits = Collection<Version>()
        try store.dispatch(Sample.Add(amount: 1))

        let token = store.subscribe(
            changesOf: { $0.select(\.count.value) },
            notify: { change in
                seen.add(change.new)
                if let commit = change.commit, commit.isChange { commits.add(commit.version) }
            })
        for _ in 0..<3 { try store.dispatch(Sample.Add(amount: 2)) }
        token.cancel()
        try store.dispatch(Sample.Add(amount: 10))

        #expect(seen.values == [1, 3, 5, 7])
        #expect(commits.values == [2, 3, 4])
        #expect(store.state.count.value == 17)
    }

    @Test("a state that JSON does not have is refused, and the store goes on")
    func unencodable() throws {
        let store = try Store(Sample())

        #expect(throws: DispatchError.self) { try store.dispatch(Sample.Break(id: 1)) }

        #expect(store.version == 0)
        #expect(try store.dispatch(Sample.Add(amount: 1)).receipt?.version == 1)
    }

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

    @Test("a reducer cannot dispatch, and reads the state before its action")
    func reducing() throws {
        let found = Collection<String>()
        let box = Collection<Store<Plain.State>>()
        let store = try Store(Calling { found.add(Calling.attempt(box.values[0])) })
        box.add(store)

        #expect(try store.dispatch(Calling.Call()).receipt?.version == 1)

        #expect(found.values == ["dispatch-in-reducer at 0"])
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

    @Test("dispatches of many threads, some with subscribers between, are one after the other")
    func threads() throws {
        let store = try Store(Sample())

        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for turn in 0..<200 {
                let token = thread == 0 && turn.isMultiple(of: 8) ? store.subscribe { _ in } : nil
                #expect(throws: Never.self) { try store.dispatch(Sample.Add(amount: 1)) }
                withExtendedLifetime(token) {}
            }
        }

        #expect(store.state.count.value == 1600)
        #expect(store.version == 1600)
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

    static func attempt(_ store: Store<Plain.State>) -> String {
        do throws(DispatchError) {
            try store.dispatch(Call())
            return "taken"
        } catch { return "\(error.code) at \(store.state.other)" }
    }
}
