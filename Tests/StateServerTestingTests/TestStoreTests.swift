import StateServerTesting
import StateStore
import Testing

/// Counts, and after a while counts once more.
struct Delayed: Domain {
    struct State: StateType, Codable { var count = 0; var isWaiting = false }
    struct Start: Action { static let type = "start"; var seconds: Int }
    struct Done: Action { static let type = "done" }
    struct Stop: Action { static let type = "stop" }

    let clock: any Clock<Duration>

    var reducer: some Reducer<State> {
        On(Start.self) { state, action throws(Rejection) in
            guard !state.isWaiting else { throw Rejection("busy", "it waits already") }
            state.isWaiting = true
        }
        On(Done.self) { state, _ in
            state.count += 1
            state.isWaiting = false
        }
        On(Stop.self) { state, _ in state.isWaiting = false }
        Effect(on: Start.self, id: "wait") { [clock] action, _, dispatch in
            try await clock.sleep(for: .seconds(action.seconds))
            try await dispatch(Done())
        }
        CancelEffect(on: Stop.self, id: "wait")
    }
}

@Suite("The test kit", .timeLimit(.minutes(5)))
struct TestStoreTests {
    @Test("what is sent and what an effect brings is asserted step by step, with time turned by hand")
    func steps() async throws {
        let clock = TestClock()
        let store = try TestStore(Delayed(clock: clock))

        try await store.send(Delayed.Start(seconds: 60)) { $0.isWaiting = true }
        try await store.send(Delayed.Start(seconds: 1), rejectedAs: "busy")
        await clock.advance(by: .seconds(59), whenSleeping: 1)
        await clock.advance(by: .seconds(1))
        // The effect needs a thread of the pool, which other tests block on their sockets.
        try await store.receive(Delayed.Done.self, within: .seconds(50)) {
            $0.count = 1
            $0.isWaiting = false
        }

        try await store.finish()
    }

    @Test("a cancelled effect brings nothing, however far the clock goes")
    func cancelled() async throws {
        let clock = TestClock()
        let store = try TestStore(Delayed(clock: clock))
        try await store.send(Delayed.Start(seconds: 60)) { $0.isWaiting = true }
        try await store.send(Delayed.Stop()) { $0.isWaiting = false }

        await clock.advance(by: .seconds(3600))

        let failure = await #expect(throws: TestStoreFailure.self) {
            try await store.receive(Delayed.Done.self, within: .milliseconds(50))
        }
        #expect(failure?.description.contains("did not come") == true)
        try await store.finish()
    }

    @Test("the end waits for what an effect brings, and names it where the test has not received it")
    func unreceived() async throws {
        for _ in 0..<20 {
            let store = try TestStore(Delayed(clock: ContinuousClock()))
            try await store.send(Delayed.Start(seconds: 0)) { $0.isWaiting = true }

            let failure = await #expect(throws: TestStoreFailure.self) { try await store.finish(within: .seconds(50)) }

            #expect(failure?.description == "at the end, these had not been received: done")
        }
    }

    @Test("an effect that still runs at the end is named")
    func running() async throws {
        let clock = TestClock()
        let store = try TestStore(Delayed(clock: clock))
        try await store.send(Delayed.Start(seconds: 60)) { $0.isWaiting = true }
        await clock.advance(by: .seconds(59), whenSleeping: 1)

        let failure = await #expect(throws: TestStoreFailure.self) {
            try await store.finish(within: .milliseconds(20))
        }

        #expect(failure?.description == "at the end, these effects still ran after 0.02 seconds: wait")
        await clock.advance(by: .seconds(1))
        try await store.receive(Delayed.Done.self, within: .seconds(50)) {
            $0.count = 1
            $0.isWaiting = false
        }
        try await store.finish(within: .seconds(50))
    }

    @Test("another change than the expected one is a failure that names the difference")
    func other() async throws {
        let store = try TestStore(Delayed(clock: TestClock()))

        let failure = await #expect(throws: TestStoreFailure.self) {
            try await store.send(Delayed.Start(seconds: 1)) { $0.count = 7 }
        }

        #expect(failure?.description.contains(#""path":"/count","value":0"#) == true)
    }

    @Test("what was not received is a failure, and so is a rejection that does not come or has another code")
    func left() async throws {
        let clock = TestClock()
        let store = try TestStore(Delayed(clock: clock))
        try await store.send(Delayed.Start(seconds: 1)) { $0.isWaiting = true }
        await #expect(throws: TestStoreFailure.self) {
            try await store.send(Delayed.Start(seconds: 1), rejectedAs: "other")
        }
        await #expect(throws: TestStoreFailure.self) { try await store.send(Delayed.Stop(), rejectedAs: "busy") }

        await #expect(throws: TestStoreFailure.self) { try await store.finish() }
    }
}
