import Dispatch
import Foundation
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Direct turns", .timeLimit(.minutes(1)))
struct DirectTurnTests {
    @Test("a store that nobody is told of does what a recorded one does", arguments: 0..<20)
    func model(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let (direct, recorded) = (try Store(Sample()), try Store(Sample(), isRecorded: true))

        for _ in 0..<100 {
            let action = Sample.anything(using: &generator)
            let (found, expected) = (Self.result(of: action, in: direct), Self.result(of: action, in: recorded))
            #expect(found == expected, "\(action)")
            #expect(try direct.latest.whole() == recorded.latest.whole())
            let names = try #require(direct.view("items.names", as: [String].self))
            #expect(names == recorded.view("items.names", as: [String].self))
        }
        #expect(direct.version > 20)
    }

    /// What a dispatch tells, without the random epoch.
    private static func result(of action: any Action, in store: Store<Sample.State>) -> String {
        do throws(DispatchError) {
            guard let receipt = try store.dispatch(action).receipt else { return "nothing" }
            #expect(receipt.cursor == store.latest.cursor.description)
            #expect(receipt.id == receipt.cursor)
            return "\(receipt.version) \(receipt.types)"
        } catch { return "\(error)" }
    }

    @Test("an action has a direct turn only where nobody has to see it")
    func conditions() throws {
        let plain = try Store(Sample())
        #expect(try plain.dispatchDirectly(Sample.Add(amount: 1))?.version == 1)
        #expect(try plain.dispatchDirectly(Sample.Put(id: 1, name: "validated")) == nil)
        #expect(try Store(Sample(), isRecorded: true).dispatchDirectly(Sample.Add(amount: 1)) == nil)
        #expect(try Store(Loading { $0 }).dispatchDirectly(Loading.Load(what: "an effect")) == nil)
        #expect(try Store(Doubling()).dispatchDirectly(Doubling.DoubleIfSmall()) == nil, "a command")

        let token = plain.subscribe { _ in }
        #expect(try plain.dispatchDirectly(Sample.Add(amount: 1)) == nil)
        token.cancel()
        #expect(try plain.dispatchDirectly(Sample.Add(amount: 1))?.version == 2)
        plain.middleware.append(.logging { _ in })
        #expect(try plain.dispatchDirectly(Sample.Add(amount: 1)) == nil)
        plain.middleware = []
        #expect(try plain.dispatchDirectly(Sample.Add(amount: 1))?.version == 3)
        plain.drain()
        #expect(throws: DispatchError.self) { try plain.dispatch(Sample.Add(amount: 1)) }
        #expect(plain.version == 3)
    }

    @Test("a subscriber that comes between direct turns sees each state behind its beginning")
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

    @Test("a state that JSON does not have is taken, and the store goes on, with and without a subscriber")
    func unencodable() throws {
        let store = try Store(Sample())
        #expect(try store.dispatch(Sample.Break(id: 1)).receipt?.version == 1)
        let seen = Collection<Int>()
        let token = store.subscribe(\.items.table.count) { seen.add($0) }
        let changes = Collection<[JSONPointer]>()
        let other = store.subscribe(changesOf: { $0 }, notify: { $0.commit.map { changes.add($0.changedPointers) } })

        try store.dispatch(Sample.Break(id: 2))
        try store.dispatch(Sample.Remove(id: 1))
        try store.dispatch(Sample.Remove(id: 2))

        #expect(seen.values == [1, 2, 1, 0])
        #expect(changes.values.count == 3)
        #expect(changes.values.first == ["/items"])
        #expect(throws: DispatchError.self) { try Store(Sample(), isRecorded: true).dispatch(Sample.Break(id: 1)) }
        withExtendedLifetime((token, other)) {}
    }

    @Test("the cascade of an action that causes nothing is complete with its turn", arguments: [false, true])
    func awaiting(isRecorded: Bool) throws {
        let threads = Collection<Bool>()
        let caller = ObjectIdentifier(Thread.current)
        let noting = Calling { threads.add(ObjectIdentifier(Thread.current) == caller) }
        let store = try Store(noting, isRecorded: isRecorded)

        let (dispatched, report) = try store.dispatch(Calling.Call(), awaiting: .cascade)

        #expect(dispatched.receipt?.version == 1)
        #expect(report.isComplete && report.caused.isEmpty && report.refused.isEmpty)
        #expect(threads.values == [true], "the turn runs on the thread of its caller")
        #expect(throws: DispatchError.self) { try store.dispatch(Sample.Add(amount: 1), awaiting: .cascade) }
    }

    @Test("a reducer in a direct turn cannot dispatch, and reads the state before its action")
    func reducing() throws {
        let found = Collection<String>()
        let box = Collection<Store<Plain.State>>()
        let store = try Store(Calling { found.add(Calling.attempt(box.values[0])) })
        box.add(store)

        #expect(try store.dispatchDirectly(Calling.Call())?.version == 1)

        #expect(found.values == ["dispatch-in-reducer at 0"])
    }

    @Test("a subscription that a reducer begins misses no commit", arguments: [false, true])
    func subscribingInReducer(isRecorded: Bool) throws {
        let seen = Collection<Int>()
        let tokens = Collection<SubscriptionToken>()
        let box = Collection<Store<Plain.State>>()
        let subscribing = Calling { tokens.add(box.values[0].subscribe(\.other) { seen.add($0) }) }
        let store = try Store(subscribing, isRecorded: isRecorded)
        box.add(store)

        for _ in 0..<2 { try store.dispatch(Calling.Call()) }
        store.onQueue {}

        #expect(seen.values == [1, 2, 2], "the first subscriber gets both states, the second one gets the second")
    }

    @Test("no commit is kept, of direct turns and of others")
    func history() throws {
        let store = try Store(Sample())
        let token = store.subscribe { _ in }
        try store.dispatch(Sample.Add(amount: 1))
        token.cancel()
        try store.dispatch(Sample.Add(amount: 1))

        #expect(store.hub.figures.historyCommitsCount == 0)
        #expect(store.hub.latest.cursor.version == 2)
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
