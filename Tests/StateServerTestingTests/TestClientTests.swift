import Logging
import StateJSON
import StateServer
import StateServerTesting
import StateStore
import Testing

@Suite("The test client", .timeLimit(.minutes(5)))
struct TestClientTests {
    enum Line: CaseIterable { case direct, live }

    /// The same conversation, with and without a socket.
    private func talk(_ line: Line, _ body: (TestClient) async throws -> Void) async throws {
        let domain = Delayed(clock: ContinuousClock())
        guard line == .live else { return try await body(try TestClient(of: domain)) }
        try await serve(domain, body)
    }

    private func serve<D: Domain>(
        _ domain: D, middleware: [Middleware<D.State>] = [], _ body: (TestClient) async throws -> Void
    ) async throws {
        var settings = Settings()
        settings.data = "none"
        settings.listen = "127.0.0.1:0"
        settings.cascadeDepthMax = 200_000
        let (addresses, ready) = AsyncStream<StateServer.Address>.makeStream()
        let server = try StateServer(
            domain, settings: settings, logger: Logger(label: "test"), middleware: middleware
        ) { ready.yield($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            for await address in addresses {
                try await body(TestClient(at: "http://\(address.host):\(address.port)"))
                break
            }
            group.cancelAll()
        }
    }

    @Test("what is dispatched can be read, and a problem is an answer", arguments: Line.allCases)
    func conversation(line: Line) async throws {
        try await talk(line) { client in
            let first = try await client.get("/v1/state")
            #expect(first.status == 200)
            #expect(try first.json() == ["count": 0, "isWaiting": false])

            let receipt = try await client.dispatch(#"{"type":"done"}"#)
            #expect(receipt.fields["state-cursor"]?.hasSuffix(".1") == true)
            #expect(try await client.get("/v1/state/count").body == "1")

            let refused = try await client.send("POST", "/v1/actions", body: #"{"type":"dome"}"#)
            #expect(refused.status == 422)
            #expect(refused.fields["content-type"] == "application/problem+json")
            await #expect(throws: TestClientFault.self) { try await client.dispatch(#"{"type":"dome"}"#) }
            #expect(try await client.send("HEAD", "/v1/state").body.isEmpty)
        }
    }

    @Test("a served store takes actions of its process, and tells its subscribers of those of clients")
    func servedStore() async throws {
        var settings = Settings()
        settings.data = "none"
        let server = try StateServer(Switch(), settings: settings, logger: Logger(label: "test"))
        let client = TestClient(server)
        let store = try #require(server.store(of: Switch.State.self))
        let (counts, seen) = AsyncStream<Int>.makeStream()
        let token = store.subscribe(\.count) { seen.yield($0) }
        let before = try await client.get("/v1/state/count")
        async let after = client.next("/v1/state/count", after: before)
        let own = try await store.dispatch(Switch.Press(times: 2))
        #expect(try await after.body == "2")
        let receipt = try await client.dispatch(#"{"type":"press","payload":{"times":3}}"#)
        #expect(own.receipt?.version == 1)
        #expect(receipt.fields["state-cursor"]?.hasSuffix(".2") == true)
        #expect(await counts.prefix(3).reduce(into: []) { $0.append($1) } == [0, 2, 5])
        #expect(server.store(of: Delayed.State.self) == nil)
        token.cancel()
    }

    @Test("a wait ends with a change, or with its time", arguments: Line.allCases)
    func waiting(line: Line) async throws {
        try await talk(line) { client in
            let before = try await client.get("/v1/state/count")
            async let after = client.next("/v1/state/count", after: before)
            // Before or after it has been parked: it is answered in either case.
            try await client.dispatch(#"{"type":"done"}"#)
            #expect(try await after.body == "1")

            let now = try await client.get("/v1/state/count")
            await #expect(throws: TestClientFault.self) {
                _ = try await client.next("/v1/state/count", after: now, within: 1)
            }
        }
    }

    @Test("a POST that waits is answered when what it causes is over", arguments: Line.allCases)
    func settling(line: Line) async throws {
        try await talk(line) { client in
            let answer = try await client.dispatch(
                #"{"type":"start","payload":{"seconds":0}}"#, fields: ["Prefer": "wait=55"])

            let report = try answer.json()
            guard case .object(let members) = report, case .array(let caused)? = members["caused"] else {
                Issue.record("\(answer.body)")
                return
            }
            #expect(members["settled"] == true)
            #expect(caused.count == 1)
            #expect(try await client.get("/v1/state/count").body == "1")
        }
    }

    @Test("a chain of 20,000 actions goes on while other clients' actions are taken, and is waited for to its end")
    func chain() async throws {
        // It goes on until another client's action was taken, however late that comes; a starving one would come never.
        let chaining = Middleware<Chain.State> { action, context, next throws(Rejection) in
            try next(action)
            guard let step = action as? Chain.Step, step.left > 0 || context.state.others == 0 else { return }
            context.dispatch(Chain.Step(left: max(0, step.left - 1)))
        }
        try await serve(Chain(), middleware: [chaining]) { client in
            async let settled = client.dispatch(
                #"{"type":"step","payload":{"left":20000}}"#, fields: ["Prefer": "wait=50"])

            while try await client.get("/v1/state/steps").body == "0" {}
            try await client.dispatch(#"{"type":"other"}"#)
            for _ in 1..<20 { try await client.dispatch(#"{"type":"other"}"#) }

            let report = try await settled.json()
            guard case .object(let members) = report else {
                Issue.record("\(report)")
                return
            }
            #expect(members["settled"] == true)
            let steps = try #require(Int(try await client.get("/v1/state/steps").body))
            #expect((20_001..<200_000).contains(steps))
            #expect(members["causedCount"] == .integer(Int64(steps - 1)))
            #expect(try await client.get("/v1/state/others").body == "20")
        }
    }
}

/// An action that a middleware answers with the next one.
private struct Chain: Domain {
    struct State: StateType, Codable { var steps = 0; var others = 0 }
    struct Step: Action { static let type = "step"; var left: Int }
    struct Other: Action { static let type = "other" }

    var reducer: some Reducer<State> {
        On(Step.self) { state, _ in state.steps += 1 }
        On(Other.self) { state, _ in state.others += 1 }
    }
}

/// A count of presses.
private struct Switch: Domain {
    struct State: StateType, Codable { var count = 0 }
    struct Press: Action {
        static let type = "press"
        var times: Int
    }

    var reducer: some Reducer<State> { On(Press.self) { state, press in state.count += press.times } }
}
