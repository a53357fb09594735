import Testing

@testable import Showcase
@testable import StateStore

@Suite("Films", .timeLimit(.minutes(5)))
struct FilmsTests {
    struct Quoting: Error { var body = "secret" }

    static let hope = Film(title: "A New Hope", director: "George Lucas", episode: 4)

    @Test("a load that succeeds sets the films, which took one commit more")
    func loaded() async throws {
        let store = try Store(Films { [Self.hope] })

        let dispatched = try await store.dispatch(Films.Load(), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        #expect(report.isComplete)
        #expect(report.caused.map(\.types) == [["films/set"]])
        #expect(report.caused.map(\.cause) == [dispatched.receipt?.id])
        #expect(store.state.phase == .finished && store.state.films == [Self.hope])
    }

    @Test("a load that fails tells why in a sentence of ours, and keeps the films from before")
    func failed() async throws {
        let errors: [any Error] = [Films.Unavailable("nobody is there"), Quoting()]
        for error in errors {
            let store = try Store(Films { throw error })
            try await store.dispatch(Films.Set(films: [Self.hope]))

            let report = try #require(try await store.dispatch(Films.Load(), awaiting: .cascade).cascade)

            #expect(report.caused.map(\.types) == [["films/fail"]])
            #expect(store.state.phase == .failed && store.state.films == [Self.hope])
            let reason = store.state.reason ?? ""
            #expect(reason == "nobody is there" || reason == "the films could not be fetched: Quoting")
        }
    }

    @Test("films that do not fit end the load instead of leaving it under way")
    func rubbish() async throws {
        let store = try Store(Films { [Film(title: "")] })

        let report = try #require(try await store.dispatch(Films.Load(), awaiting: .cascade).cascade)

        #expect(report.refused.map(\.code) == ["films.bounds"])
        #expect(report.caused.map(\.types) == [["films/fail"]])
        #expect(store.state.phase == .failed)
        #expect(store.state.reason == "the films that came do not fit: a title has 1 to 1000 bytes")
    }

    @Test("a load that is given up changes nothing when it comes after all", arguments: [true, false])
    func cancelled(isDeaf: Bool) async throws {
        let gate = AsyncStream.makeStream(of: Void.self)
        let store = try Store(
            Films {
                // One that is deaf to cancellation goes on when the gate opens.
                if isDeaf {
                    await Task { for await _ in gate.stream { break } }.value
                } else {
                    try await Task.sleep(for: .seconds(3600))
                }
                return [Self.hope]
            })
        async let settled = store.dispatch(Films.Load(), awaiting: .cascade)
        for await phase in store.values({ $0.select(\.phase) }) where phase == .loading { break }

        try await store.dispatch(Films.Cancel())
        gate.continuation.yield()
        let report = try #require(try await settled.cascade)

        #expect(report.causedCount == 0)
        #expect(store.state.phase == .idle && store.state.films.isEmpty)
    }

    @Test("a slow load is finished by a second one that is quick")
    func replaced() async throws {
        let starts = Collection<Int>()
        let store = try Store(
            Films {
                starts.add(1)
                if starts.values.count == 1 { try await Task.sleep(for: .seconds(3600)) }
                return [Self.hope]
            })
        async let first = store.dispatch(Films.Load(), awaiting: .cascade)
        while starts.values.isEmpty { await Task.yield() }

        let second = try #require(try await store.dispatch(Films.Load(), awaiting: .cascade).cascade)
        let firstReport = try #require(try await first.cascade)

        #expect(second.causedCount == 1 && firstReport.causedCount == 0)
        #expect(store.state.phase == .finished)
    }

    @Test("without an address a load says so")
    func unconfigured() async throws {
        let store = try Store(Showcase())

        _ = try await store.dispatch(Films.Load(), awaiting: .cascade)

        #expect(store.state.films.reason == "no films address is configured")
    }

    @Test("nothing can fail or be given up that is not under way")
    func idle() throws {
        let store = try Store(Films())

        #expect(try store.rejection(of: Films.Fail(reason: "no"))?.code == "films.not-loading")
        #expect(try store.rejection(of: Films.Cancel())?.code == "films.not-loading")
    }

    @Test("a restart interrupts a load, and nothing else")
    func restart() throws {
        var state = Films.State()
        #expect(try Films().resumed(state).phase == .idle)
        state.phase = .loading

        let resumed = try Films().resumed(state)

        #expect(resumed.phase == .failed && resumed.reason == "interrupted by a restart")
    }

    @Test("there are at most 1000 films, with titles up to 1000 bytes")
    func bounds() throws {
        let store = try Store(Films())
        let longest = Film(title: String(repeating: "a", count: 1000))
        let tooLong = Film(title: longest.title + "a")

        #expect(try store.rejection(of: Films.Set(films: Array(repeating: longest, count: 1000))) == nil)
        let many = try store.rejection(of: Films.Set(films: Array(repeating: Self.hope, count: 1001)))
        let long = try store.rejection(of: Films.Set(films: [longest, tooLong]))

        #expect(many?.pointer == "/films")
        #expect(long?.pointer == "/films/1/title")
    }
}
