import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// A domain that loads with an effect, as the films of the seed documents do.
struct Loading: Domain {
    struct State: StateType, Codable, Equatable { var phase = "idle"; var runs = 0 }
    struct Load: Action { static let type = "load"; var what: String }
    struct Loaded: Action { static let type = "loaded"; var what: String }
    struct Abort: Action { static let type = "abort" }
    struct Ping: Action { static let type = "ping" }

    let fetch: @Sendable (String) async throws -> String

    var reducer: some Reducer<State> {
        On(Load.self) { state, _ in
            state.phase = "loading"
            state.runs += 1
        }
        On(Loaded.self) { state, action throws(Rejection) in
            guard action.what != "rubbish" else { throw Rejection("rubbish", "that is rubbish") }
            state.phase = action.what
        }
        On(Abort.self) { state, _ in state.phase = "aborted" }
        Effect(on: Load.self, id: "load") { [fetch] action, _, dispatch in
            try await dispatch(Loaded(what: fetch(action.what)))
        }
        CancelEffect(on: Abort.self, id: "load")
        Effect(on: Ping.self) { _, state, dispatch in
            if state.phase != "pong" { try await dispatch(Loaded(what: "pong")) }
        }
    }
}

/// A domain with ``Loading`` as a slice.
struct Nested: Domain {
    struct State: StateType { var loading = Loading.State() }
    var reducer: some Reducer<State> { Slice("loading", \.loading) { Loading { $0 } } }
}

@Suite("Effects", .timeLimit(.minutes(5)))
struct EffectTests {
    struct Down: Error {}

    @Test("an effect runs after the commit and comes back as an action that names its cause")
    func back() async throws {
        let phases = Collection<String>()
        let commits = Collection<Commit>()
        let store = try Store(Loading { "fetched \($0)" })
        let token = store.subscribe(
            changesOf: { $0.select(\.phase) },
            notify: {
                phases.add($0.new)
                if let commit = $0.commit { commits.add(commit) }
            })

        let dispatched = try await store.dispatch(Loading.Load(what: "films"), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        #expect(phases.values == ["idle", "loading", "fetched films"])
        #expect(commits.values.map(\.cause) == [nil, dispatched.receipt?.id])
        #expect(report.caused.map(\.types) == [["loaded"]])
        #expect(report.isComplete)
        withExtendedLifetime(token) {}
    }

    @Test("an effect that throws changes nothing and is reported")
    func fails() async throws {
        let events = Collection<StoreEvent>()
        let store = try Store(Loading { _ in throw Down() }, report: { events.add($0) })

        let report = try #require(try await store.dispatch(Loading.Load(what: "films"), awaiting: .cascade).cascade)

        #expect(report.isComplete && report.caused.isEmpty)
        #expect(store.state.phase == "loading")
        guard case .effectFailed("load", let reason, _)? = events.values.first else { Issue.record("none"); return }
        #expect(reason == "Down()")
    }

    @Test("a rejected dispatch of an effect throws in the effect, and the cascade's report lists it")
    func rejected() async throws {
        let store = try Store(Loading { $0 })

        let report = try #require(try await store.dispatch(Loading.Load(what: "rubbish"), awaiting: .cascade).cascade)

        #expect(report.refused.map(\.code) == ["rubbish"])
        #expect(report.isComplete)
    }

    @Test("an action cancels an effect, and later dispatches of the effect are refused")
    func cancelled() async throws {
        let gate = AsyncStream.makeStream(of: Void.self)
        let events = Collection<StoreEvent>()
        let store = try Store(
            Loading { what in
                for await _ in gate.stream { break }
                return what
            }, report: { events.add($0) })
        async let settled = store.dispatch(Loading.Load(what: "late"), awaiting: .cascade)
        for await phase in store.values({ $0.select(\.phase) }) where phase == "loading" { break }

        try await store.dispatch(Loading.Abort())
        let report = try #require(try await settled.cascade)

        #expect(store.state.phase == "aborted")
        #expect(report.causedCount == 0)
        #expect(events.values.isEmpty)
    }

    @Test("a new effect with the same ID replaces the one that runs")
    func replaced() async throws {
        let gate = AsyncStream.makeStream(of: Void.self)
        let store = try Store(
            Loading { what in
                guard what == "first" else { return what }
                for await _ in gate.stream { break }
                return what
            })
        async let first = store.dispatch(Loading.Load(what: "first"), awaiting: .cascade)
        for await runs in store.values({ $0.select(\.runs) }) where runs == 1 { break }

        let second = try #require(try await store.dispatch(Loading.Load(what: "second"), awaiting: .cascade).cascade)
        let firstReport = try #require(try await first.cascade)

        #expect(second.causedCount == 1)
        #expect(firstReport.causedCount == 0)
        #expect(store.state.phase == "second")
    }

    @Test("an effect of a slice is cancelled under the slice's name")
    func slice() throws {
        let model = try CompiledDomain(Nested())

        #expect(model.entry(ofType: "load")?.effects.map(\.id) == ["loading.load"])
        #expect(model.entry(ofType: "abort")?.effects.map(\.id) == ["loading.load"])
    }

    @Test("an action that only has an effect is committed without a change")
    func only() async throws {
        let store = try Store(Loading { $0 })

        let dispatched = try await store.dispatch(Loading.Ping(), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        #expect(dispatched.receipt?.isChange == false)
        #expect(report.causedCount == 1)
        #expect(store.state.phase == "pong")
    }

    @Test("above the limit the store does not start an effect and reports it, and the commit remains")
    func tooMany() async throws {
        var limits = StoreLimits()
        limits.effectsMax = 0
        let events = Collection<StoreEvent>()
        let store = try Store(Loading { $0 }, limits: limits, report: { events.add($0) })

        let dispatched = try await store.dispatch(Loading.Load(what: "a"), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        #expect(dispatched.receipt != nil)
        #expect(report.isComplete && report.causedCount == 0)
        #expect(events.values.count == 1)
    }

    @Test("an effect that replaces another one takes its place, and the other is cancelled also where there is none")
    func replacing() async throws {
        let isCancelled = AsyncStream.makeStream(of: Int.self)
        let effects = Effects(countMax: 1)
        let wait = { @Sendable (number: Int) in
            try? await Task.sleep(for: .seconds(60))
            if Task.isCancelled { isCancelled.continuation.yield(number) }
        }
        var cancelled = isCancelled.stream.makeAsyncIterator()

        #expect(effects.start(id: "a") { await wait(1) })
        #expect(effects.start(id: "a") { await wait(2) })
        #expect(await cancelled.next() == 1)
        #expect(!effects.start(id: "b") { await wait(3) })

        effects.cancel("a")
        #expect(await cancelled.next() == 2)
    }

    @Test("a store that stops cancels its effects and completes the cascades that wait for them")
    func stopping() async throws {
        let gate = AsyncStream.makeStream(of: Void.self)
        let store = try Store(
            Loading { what in
                for await _ in gate.stream { break }
                return what
            })
        async let settled = store.dispatch(Loading.Load(what: "late"), awaiting: .cascade)
        for await phase in store.values({ $0.select(\.phase) }) where phase == "loading" { break }

        store.drain()
        let report = try #require(try await settled.cascade)

        #expect(report.isComplete)
        #expect(store.state.phase == "loading")
    }
}
