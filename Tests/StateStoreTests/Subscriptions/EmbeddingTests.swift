import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("A store in process", .timeLimit(.minutes(5)))
struct EmbeddingTests {
    /// A store whose middleware answers each text with a number, and each number with another one, up to 3.
    private static func cascading() throws -> Store<Plain.State> {
        try Store(
            Plain(),
            middleware: [
                Middleware { action, context, next throws(Rejection) in
                    try next(action)
                    switch action {
                    case is Plain.SetText: context.dispatch(Plain.SetNumber(number: 1))
                    case let action as Plain.SetNumber where action.number ?? 0 < 3:
                        context.dispatch(Plain.SetNumber(number: (action.number ?? 0) + 1))
                    default: break
                    }
                }
            ])
    }

    @Test("a dispatch that awaits the cascade returns when everything that it caused is applied")
    func awaiting() throws {
        let store = try Self.cascading()

        let result = try store.dispatch(Plain.SetText(text: "a"), awaiting: .cascade)
        let report = try #require(result.cascade)

        #expect(result.receipt?.version == 1)
        #expect(store.state.number == 3)
        #expect(report.causedCount == 3)
        #expect(report.isComplete)
    }

    @Test("so do a batch and a creator")
    func awaitingOthers() throws {
        let store = try Self.cascading()

        let batch = try store.dispatch(
            .batch([Plain.SetOther(other: 1), Plain.SetText(text: "b")]), awaiting: .cascade)
        #expect((store.state.number, batch.cascade?.causedCount) == (3, 3))

        let created = try store.dispatch(
            .creator { state, _ in Plain.SetNumber(number: state.other) }, awaiting: .cascade)
        #expect((store.state.number, created.cascade?.causedCount) == (3, 2))
    }

    @Test("a refused action awaits nothing")
    func refused() throws {
        let store = try Self.cascading()

        #expect(throws: DispatchError.self) { try store.dispatch(Plain.SetNumber(number: 13), awaiting: .cascade) }
        #expect(try store.dispatch(.creator { _, _ in nil }, awaiting: .cascade).cascade?.causedCount == 0)
    }

    @Test("inside a turn it only queues the action")
    func awaitingInside() throws {
        let store = try Store(Plain())
        let results = Collection<String>()
        let token = store.subscribe(\.text) { text in
            guard text == "go" else { return }
            #expect(Store<Plain.State>.isInTurn)
            do {
                let dispatched = try store.dispatch(Plain.SetOther(other: 7), awaiting: .cascade)
                #expect(dispatched.cascade == nil)
                results.add("\(dispatched.result)")
            } catch { Issue.record(error) }
        }

        try store.dispatch(Plain.SetText(text: "go"), awaiting: .cascade)

        #expect(results.values == ["queued"])
        #expect(store.state.other == 7)
        #expect(!Store<Plain.State>.isInTurn)
        token.cancel()
    }

    @Test("a subscription to a selection is written with one closure behind it, which may ignore the value")
    func trailingClosures() throws {
        let store = try Store(Plain())
        let seen = Collection<String>()
        let tokens = [
            store.subscribe({ $0.select(\.other) }) { seen.add("\($0)") },
            store.subscribe({ $0.select(\.other) }) { _ in seen.add("some") },
            store.subscribe({ $0.select { ($0.other, $0.text) } }) { seen.add("\($0.0)\($0.1)") },
            store.subscribe(changesOf: { $0.select(\.other) }) { seen.add("\($0.version)") },
        ]

        try store.dispatch(Plain.SetOther(other: 7))

        #expect(seen.values == ["0", "some", "0initial", "0", "7", "some", "7initial", "1"])
        withExtendedLifetime(tokens) {}
    }

    @Test("a subscriber on a queue of its own gets each value in order, and none after the end")
    func onQueue() throws {
        let store = try Store(Plain())
        let (queue, seen) = (DispatchQueue(label: "test"), Collection<Int>())
        let token = store.subscribe(on: queue, { $0.select(\.other) }) { value in
            #expect(!Store<Plain.State>.isInTurn)
            seen.add(value)
        }

        for other in 1...50 { try store.dispatch(Plain.SetOther(other: other)) }
        queue.sync {}
        #expect(seen.values == Array(0...50))

        queue.suspend()
        try store.dispatch(Plain.SetOther(other: 51))
        token.cancel()
        queue.resume()
        queue.sync {}
        #expect(seen.values == Array(0...50))
    }

    @MainActor
    @Test("a subscriber on the main actor gets the values there")
    func onMainActor() async throws {
        let store = try Store(Plain())
        var seen: [Int] = []
        let token = await withCheckedContinuation { continuation in
            let token = store.subscribe({ $0.select(\.other) }, onMainActor: { value in seen.append(value) })
            DispatchQueue.global().async {
                do {
                    for other in 1...3 { try store.dispatch(Plain.SetOther(other: other)) }
                } catch { Issue.record(error) }
                DispatchQueue.main.async { continuation.resume(returning: token) }
            }
        }

        #expect(seen == [0, 1, 2, 3])
        token.cancel()
    }

    @Test("the commits are a sequence, each once and in order")
    func commits() async throws {
        let store = try Store(Plain())
        let commits = store.commits()

        for other in 1...20 { _ = try await store.dispatch(Plain.SetOther(other: other)) }

        var versions: [Version] = []
        for await commit in commits {
            versions.append(commit.version)
            if commit.version == 20 { break }
        }
        #expect(versions == Array(1...20))
    }

    @Test("a subscription skips what its own function takes for the same")
    func skipping() throws {
        let store = try Store(Plain())
        let seen = Collection<Int>()
        let token = store.subscribe({ $0.select(\.other).skipRepeats { $0 / 10 == $1 / 10 } }) { seen.add($0) }

        for other in [1, 9, 10, 19, 35] { try store.dispatch(Plain.SetOther(other: other)) }

        #expect(seen.values == [0, 10, 35])
        token.cancel()
    }
}
