import Synchronization
import Testing

@testable import StateStore

@Suite("Asynchronous work in process", .timeLimit(.minutes(5)))
struct WorkTests {
    struct Down: Error {}

    /// A gate that opens once, and at which a cancelled task does not wait.
    struct Barrier: Sendable {
        private let gate = AsyncStream.makeStream(of: Void.self)

        func open() { gate.continuation.finish() }

        func wait() async { for await _ in gate.stream {} }
    }

    @Test("an asynchronous creator gets the state at its start, and dispatches when its work is done")
    func creator() async throws {
        let store = try Store(Plain())
        try await store.dispatch(Plain.SetOther(other: 40))

        let token = store.start { state, dispatch in
            await Task.yield()
            try await dispatch(Plain.SetOther(other: state.other + 2))
        }
        for await value in store.values({ $0.select(\.other) }) where value == 42 { break }

        #expect(store.version == 2)
        withExtendedLifetime(token) {}
    }

    @Test(
        "the end of its token cancels a creator, and the store refuses what it dispatches then",
        arguments: [true, false])
    func cancelled(byCall: Bool) async throws {
        let events = Collection<StoreEvent>()
        let store = try Store(Plain(), report: { events.add($0) })
        let (begun, barrier, refused) = (Barrier(), Barrier(), AsyncStream.makeStream(of: String.self))
        var token: SubscriptionToken? = store.start { _, dispatch in
            begun.open()
            await barrier.wait()
            do throws(DispatchError) {
                try await dispatch(Plain.SetOther(other: 7))
            } catch {
                refused.continuation.yield(error.code)
            }
        }
        await begun.wait()

        if byCall { token?.cancel() } else { token = nil }
        barrier.open()

        for await code in refused.stream {
            #expect(code == "cancelled")
            break
        }
        #expect(store.version == 0)
        #expect(events.values.isEmpty)
        withExtendedLifetime(token) {}
    }

    @Test("an error of a creator is reported, and so is one that the limit does not let start")
    func failures() async throws {
        let events = AsyncStream.makeStream(of: StoreEvent.self)
        let store = try Store(Plain(), report: { events.continuation.yield($0) })
        var limits = StoreLimits()
        limits.effectsMax = 0
        let full = try Store(Plain(), limits: limits, report: { events.continuation.yield($0) })
        var reasons: [String] = []

        let tokens = [store.start { _, _ in throw Down() }, full.start { _, _ in }]
        for await case .effectFailed("creator", let reason, "") in events.stream {
            reasons.append(reason)
            if reasons.count == 2 { break }
        }

        #expect(reasons.contains("Down()"))
        #expect(reasons.contains { $0.hasPrefix("not started") })
        withExtendedLifetime(tokens) {}
    }

    @Test("work on each value is cancelled by the next value, and by the end of the subscription")
    func effectOfSubscription() async throws {
        let store = try Store(Plain())
        let (begun, ended) = (AsyncStream.makeStream(of: Int.self), AsyncStream.makeStream(of: Int.self))
        let token = store.subscribe(
            { $0.select(\.other) },
            effect: { value, _ in
                begun.continuation.yield(value)
                try? await Task.sleep(for: .seconds(50))
                #expect(Task.isCancelled)
                ended.continuation.yield(value)
            })
        var (beginnings, ends) = (begun.stream.makeAsyncIterator(), ended.stream.makeAsyncIterator())

        #expect(await beginnings.next() == 0)
        try await store.dispatch(Plain.SetOther(other: 1))
        #expect(await ends.next() == 0)
        #expect(await beginnings.next() == 1)
        token.cancel()
        #expect(await ends.next() == 1)
        try await store.dispatch(Plain.SetOther(other: 2))

        #expect(store.untyped.subscriptionsCount == 0)
        // The work has said that it ends a moment before its task is over.
        for _ in 0..<500 where store.untyped.effects.count > 0 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(store.untyped.effects.count == 0)
    }

    @Test("a cascade waits for the work on its value, and its commits name the commit as their cause")
    func cascade() async throws {
        let store = try Store(Plain())
        let token = store.subscribe(
            { $0.select(\.text) },
            effect: { text, dispatch in
                guard text == "go" else { return }
                try await Task.sleep(for: .milliseconds(20))
                try await dispatch(Plain.SetOther(other: 9))
            })

        let result = try await store.dispatch(Plain.SetText(text: "go"), awaiting: .cascade)
        let report = try #require(result.cascade)

        #expect(store.state.other == 9)
        #expect(report.caused.map(\.cause) == [result.receipt?.id])
        withExtendedLifetime(token) {}
    }

    @Test("a creator that a subscriber starts belongs to the cascade of the commit")
    func creatorInNotification() async throws {
        let store = try Store(Plain())
        let creators = Collection<SubscriptionToken>()
        let token = store.subscribe(\.text) { text in
            guard text == "go" else { return }
            creators.add(
                store.start { state, dispatch in try await dispatch(Plain.SetOther(other: state.text.count)) })
        }

        let report = try #require(try await store.dispatch(Plain.SetText(text: "go"), awaiting: .cascade).cascade)

        #expect(store.state.other == 2)
        #expect(report.causedCount == 1)
        withExtendedLifetime(token) {}
    }
}

@Suite("Swallowed actions", .timeLimit(.minutes(5)))
struct SwallowedActionTests {
    /// A store whose middleware swallows each text, and dispatches a number in its place, and another one after that.
    private static func swallowing(_ limits: StoreLimits = StoreLimits(), isEndless: Bool = false) throws
        -> Store<Plain.State>
    {
        try Store(
            Plain(),
            middleware: [
                Middleware { action, context, next throws(Rejection) in
                    guard let text = action as? Plain.SetText else {
                        try next(action)
                        if let number = action as? Plain.SetNumber, number.number == 1 {
                            context.dispatch(Plain.SetNumber(number: 2))
                        }
                        return
                    }
                    if isEndless { return context.dispatch(text) }
                    if text.text != "nothing" { context.dispatch(Plain.SetNumber(number: 1)) }
                }
            ], limits: limits)
    }

    @Test("a dispatch that awaits the cascade waits for what a middleware has dispatched in the action's place")
    func awaited() throws {
        let store = try Self.swallowing()

        let dispatched = try store.dispatch(Plain.SetText(text: "a"), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        guard case .nothing = dispatched.result else { Issue.record("\(dispatched)"); return }
        #expect(store.state.number == 2)
        #expect(report.isComplete)
        #expect(report.caused.map(\.types) == [[Plain.SetNumber.type], [Plain.SetNumber.type]])
        #expect(report.caused.map(\.cause) == ["", report.caused.first?.id])
    }

    @Test("so does one that does not block its thread")
    func awaitedWithoutBlocking() async throws {
        let store = try Self.swallowing()

        let report = try #require(try await store.dispatch(Plain.SetText(text: "a"), awaiting: .cascade).cascade)

        #expect(store.state.number == 2)
        #expect(report.causedCount == 2)
    }

    @Test("a swallowed action that leaves nothing is complete at once")
    func nothing() throws {
        let dispatched = try Self.swallowing().dispatch(Plain.SetText(text: "nothing"), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        guard case .nothing = dispatched.result else { Issue.record("\(dispatched)"); return }
        #expect(report.isComplete && report.causedCount == 0)
    }

    @Test("the first commit has no cause, and is the root of those that it causes")
    func causes() async throws {
        let store = try Self.swallowing()
        let commits = store.commits()

        try await store.dispatch(Plain.SetText(text: "a"), awaiting: .cascade)
        var seen: [Commit] = []
        for await commit in commits {
            seen.append(commit)
            if seen.count == 2 { break }
        }

        #expect(seen.map(\.cause) == [nil, seen[0].id])
        #expect(seen.map(\.root) == [nil, seen[0].id])
    }

    @Test("a middleware that swallows what it dispatches ends at the budget of a cascade")
    func endless() throws {
        var limits = StoreLimits()
        limits.cascadeActionsMax = 10
        let store = try Self.swallowing(limits, isEndless: true)

        let report = try #require(try store.dispatch(Plain.SetText(text: "a"), awaiting: .cascade).cascade)

        #expect(report.refused.map(\.code) == ["cascade-over-budget"])
        #expect(report.refused.first?.detail.contains("an action that a middleware swallowed") == true)
    }
}
