import Foundation
import StateJSON
import StateServer
import StateServerTesting
import StateStore
import Synchronization
import Testing

@testable import StateClient

/// A domain with every type that has a spelling of its own in JSON.
private struct Shop: Domain {
    struct State: StateType {
        var orders: [String: Order] = [:]
        var count = 0
    }
    struct Order: Codable, Sendable, Equatable {
        var at: Date
        var seal: Data
        var page: URL
        var price: Decimal
        var note: String?
    }
    struct Place: Action { static let type = "place"; var name: String; var order: Order }
    struct Cancel: Action { static let type = "cancel"; var name: String }
    struct Count: Action { static let type = "count" }

    var reducer: some Reducer<State> {
        Field("orders", \.orders)
        Field("count", \.count)
        On(Place.self) { state, action throws(Rejection) in
            guard state.orders[action.name] == nil else {
                throw Rejection("shop.taken", "the name is taken", pointer: "/name")
            }
            state.orders[action.name] = action.order
        }
        On(Cancel.self) { state, action in state.orders[action.name] = nil }
        On(Count.self) { state, _ in state.count += 1 }
        View("names", reads: ["/orders"]) { state in state.orders.keys.sorted() }
    }
}

/// A server in this process, which can be away, lose answers, and be another one.
private final class Line: Sendable {
    struct State {
        var server: TestClient?
        var answersToLose = 0
        var calls: [Call] = []
        var problems: [String] = []
    }
    let state: Mutex<State>

    init() throws { state = Mutex(State(server: try TestClient(of: Shop()))) }

    func set(_ server: TestClient?) { state.withLock { $0.server = server } }

    var calls: [Call] { state.withLock { $0.calls } }

    var client: StateClient {
        StateClient(
            Requests(
                base: "/v1", tokens: { nil },
                report: { [self] problem in state.withLock { $0.problems.append(problem.code) } }
            ) { [self] call, base, _ in
                let (server, isLost) = state.withLock { state in
                    state.calls.append(call)
                    let isLost = call.body != nil && state.answersToLose > 0
                    if isLost { state.answersToLose -= 1 }
                    return (state.server, isLost)
                }
                guard let server else { throw URLError(.cannotConnectToHost) }
                var fields: [String: String] = [:]
                fields["Idempotency-Key"] = call.key
                fields["If-None-Match"] = call.tag
                let answer = try await server.send(
                    call.body == nil ? "GET" : "POST", base + call.target,
                    body: call.body.map { String(decoding: $0, as: UTF8.self) }, fields: fields)
                if isLost { throw URLError(.networkConnectionLost) }
                return Answer(
                    status: answer.status, tag: answer.fields["etag"], cursor: answer.fields["state-cursor"],
                    retryAfter: answer.fields["retry-after"].flatMap { Int($0) } ?? 0, body: Array(answer.body.utf8))
            })
    }
}

@Suite("The client with a server in its process", .timeLimit(.minutes(5)))
struct ContractTests {
    private let order = Shop.Order(
        at: Date(timeIntervalSince1970: 1_764_000_000.25), seal: Data([0, 255]),
        page: URL(string: "https://shop.example/ü?q=1") ?? URL(filePath: "/"), price: Decimal(string: "0.1") ?? 0)

    @Test("what is dispatched is read back as it was: from the state, a view, a commit and a loop")
    func roundTrip() async throws {
        let client = try Line().client
        let place = Shop.Place(name: "a/b ü", order: order)

        let receipt = try await client.dispatch(place, id: "first", meta: ["by": "hand"])
        let read = try await client.state("/orders/a~1b ü", as: Shop.Order.self)
        let names = try await client.state("view:names", as: [String].self)
        var values = client.values("/orders", as: [String: Shop.Order].self).makeAsyncIterator()
        var changes = client.changes(since: "oldest").makeAsyncIterator()
        guard case .commit(let commit) = try await changes.next() else { return #expect(Bool(false), "no commit") }

        #expect((receipt.version, receipt.id, receipt.changed) == (1, "first", true))
        #expect(read == order)
        #expect(names == ["a/b ü"])
        #expect(try await values.next() == ["a/b ü": order])
        #expect((commit.version, commit.id, commit.cursor) == (1, "first", receipt.cursor))
        #expect(try commit.actions(Shop.Place.self).map(\.order) == [order])
        #expect(try commit.actions(Shop.Cancel.self).isEmpty)
        #expect(commit.action?[pointer: "/meta/by"] == "hand")
        #expect(commit.patch[pointer: "/0/op"] == "add")
        #expect(abs(commit.time.timeIntervalSinceNow) < 60)
    }

    @Test("what is not there is nil, and what is of another type is a problem with the place")
    func absent() async throws {
        let client = try Line().client
        try await client.dispatch(Shop.Place(name: "", order: order))

        #expect(try await client.state("/orders/none", as: Shop.Order.self) == nil)
        #expect(try await client.state("view:none", as: Int.self) == nil)
        #expect(try await client.state("/orders/", as: Shop.Order.self) == order)
        #expect(try await client.state("/orders//none", as: Int.self) == nil)
        await #expect { try await client.state("/orders", as: [String: Int].self) } throws: {
            let problem = $0 as? StateClient.Problem
            return problem?.code == "unexpected-value" && problem?.errors.first?.pointer == "/"
        }
        struct Newer: Codable { var price: Decimal }
        #expect(try await client.state("/orders/", as: Newer.self)?.price == order.price)
    }

    @Test("a refusal is thrown at once with its code and the place of the fault")
    func refusals() async throws {
        let line = try Line()
        let client = line.client
        let place = Shop.Place(name: "a", order: order)
        try await client.dispatch(place, expect: [.init("/count", 0), .init(absent: "/nothing")], key: "mine")

        #expect(
            try await client.dispatch(place, expect: [.init("/count", 0), .init(absent: "/nothing")], key: "mine")
                .version == 1)
        await #expect { try await client.dispatch(place) } throws: {
            let problem = $0 as? StateClient.Problem
            return problem?.code == "shop.taken" && problem?.errors.first?.pointer == "/payload/name"
        }
        for (code, key, expectations) in [
            ("precondition-failed", "other", [StateClient.Expectation("/count", 1)]),
            ("precondition-failed", "third", [StateClient.Expectation(absent: "/count")]),
            ("idempotency-key-reused", "mine", []), ("malformed-request", "a\r\nb", []),
        ] {
            await #expect { try await client.dispatch(Shop.Count(), expect: expectations, key: key) } throws: {
                ($0 as? StateClient.Problem)?.code == code
            }
        }
        #expect(line.state.withLock { $0.problems }.isEmpty)
    }

    @Test("an action whose answers are lost commits once, by one key and one body")
    func lostAnswers() async throws {
        let line = try Line()
        line.state.withLock { $0.answersToLose = 2 }

        let receipt = try await line.client.dispatch(Shop.Count())
        let calls = line.calls.filter { $0.body != nil }

        #expect(receipt.version == 1)
        #expect(try await line.client.state("/count", as: Int.self) == 1)
        #expect(calls.count == 3)
        #expect(Set(calls.map(\.key)).count == 1 && Set(calls.map(\.body)).count == 1)
        #expect(line.state.withLock { $0.problems } == ["no-answer", "no-answer"])
        try await line.client.dispatch(Shop.Count())
        #expect(line.calls.last { $0.body != nil }?.key != calls[0].key)
    }

    @Test("the actions of an actor commit in the order of the calls, and a refused one does not stop those behind it")
    @MainActor
    func order() async throws {
        let line = try Line()
        let (client, server) = (line.client, line.state.withLock { $0.server })
        try await client.dispatch(Shop.Place(name: "taken", order: order))
        line.set(nil)
        line.state.withLock { $0.answersToLose = 3 }

        let calls = (0..<40).map { number in
            Task { @MainActor in
                if number % 8 == 3 {
                    return try await client.dispatch(Shop.Place(name: "taken", order: order), id: "\(number)")
                }
                return try await client.dispatch(Shop.Count(), id: "\(number)")
            }
        }
        try await Task.sleep(for: .seconds(0.1))
        line.set(server)
        var versions: [Version?] = []
        for call in calls { versions.append(try? await call.value.version) }
        let commits = try await ids(client.changes(since: "oldest"), 36).dropFirst()

        #expect(commits.map(\.id) == (0..<40).filter { $0 % 8 != 3 }.map { "\($0)" })
        #expect(versions.compactMap(\.self) == Array(2...36))
        #expect(versions.indices.filter { versions[$0] == nil } == [3, 11, 19, 27, 35])
        #expect(try await client.state("/count", as: Int.self) == 35)
    }

    @Test("an action that is cancelled or whose limit has passed is not sent, and those behind it are")
    @MainActor
    func givenUp() async throws {
        let line = try Line()
        let (client, server) = (line.client, line.state.withLock { $0.server })
        line.set(nil)
        func count(_ id: String, _ limit: Duration = .seconds(1_000_000_000)) -> Task<StateClient.Receipt, any Error> {
            Task { @MainActor in try await client.dispatch(Shop.Count(), id: id, within: limit) }
        }

        let calls = [count("a"), count("b"), count("c", .seconds(0.2)), count("d")]
        try await Task.sleep(for: .seconds(0.1))
        calls[1].cancel()
        await #expect(throws: CancellationError.self) { try await calls[1].value }
        await #expect { try await calls[2].value } throws: { ($0 as? StateClient.Problem)?.code == "no-answer" }
        line.set(server)

        #expect(try await calls[0].value.version == 1)
        #expect(try await calls[3].value.version == 2)
        #expect(try await ids(client.changes(since: "oldest"), 2).map(\.id) == ["a", "d"])
    }

    @Test("a server that is away is awaited up to the limit")
    func away() async throws {
        let line = try Line()
        line.set(nil)

        await #expect { try await line.client.dispatch(Shop.Count(), within: .seconds(0.6)) } throws: {
            let problem = $0 as? StateClient.Problem
            return problem?.code == "no-answer" && problem?.isPassing == true
        }
    }

    @Test("a loop over values waits for a change, skips what it misses, and says what goes and comes")
    func values() async throws {
        let line = try Line()
        let client = line.client
        var counts = client.values("/count", as: Int.self).makeAsyncIterator()
        var orders = client.values("/orders/a", as: Shop.Order.self).makeAsyncIterator()
        #expect(try await counts.next() == 0)
        #expect(try await orders.next() == .some(nil))

        for _ in 0..<3 { try await client.dispatch(Shop.Count()) }
        #expect(try await counts.next() == 3)
        async let next = { [counts] in
            var counts = counts; return try await counts.next()
        }()
        async let first = { [orders] in
            var orders = orders; return try await orders.next()
        }()
        try await Task.sleep(for: .seconds(0.1))
        try await client.dispatch(Shop.Place(name: "a", order: order))
        try await client.dispatch(Shop.Count())

        #expect(try await next == 4)
        #expect(try await first == order)
    }

    @Test("a loop over commits has each once, filters them, and goes on behind a cursor")
    func changes() async throws {
        let client = try Line().client
        for number in 0..<5 {
            try await client.dispatch(Shop.Count(), id: "c\(number)")
            try await client.dispatch(Shop.Place(name: "\(number)", order: order))
        }

        let all = try await ids(client.changes(since: "oldest"), 10)
        let places = try await ids(client.changes(since: "oldest", types: ["place", "cancel"]), 5)
        let counts = try await ids(client.changes(since: "oldest", path: "/count"), 5)
        var loop = client.changes(since: "oldest").makeAsyncIterator()
        let third = try await [loop.next(), loop.next(), loop.next()].last??.cursor ?? ""

        #expect(all.map(\.version) == Array(1...10))
        #expect(places.map(\.version) == [2, 4, 6, 8, 10])
        #expect(counts.map(\.id) == (0..<5).map { "c\($0)" })
        #expect(try await ids(client.changes(since: third), 7).map(\.version) == Array(4...10))
        await #expect { try await ids(client.changes(since: "now", types: ["nothing"]), 1) } throws: {
            ($0 as? StateClient.Problem)?.code == "unknown-action"
        }
        await #expect { try await ids(client.changes(since: "yesterday"), 1) } throws: {
            ($0 as? StateClient.Problem)?.code == "bad-cursor"
        }
    }

    private func ids(_ changes: StateClient.Changes, _ count: Int) async throws -> [StateClient.Commit] {
        var found: [StateClient.Commit] = []
        for try await case .commit(let commit) in changes {
            found.append(commit)
            if found.count == count { break }
        }
        return found
    }

    @Test("another history is told with its state, and the loops go on in it")
    func reset() async throws {
        let line = try Line()
        let client = line.client
        try await client.dispatch(Shop.Count())
        var changes = client.changes(since: "oldest").makeAsyncIterator()
        var counts = client.values("/count", as: Int.self).makeAsyncIterator()
        #expect(try await changes.next()?.cursor.hasSuffix(".1") == true)
        #expect(try await counts.next() == 1)

        line.set(try TestClient(of: Shop()))
        try await client.dispatch(Shop.Place(name: "a", order: order))
        guard case .reset(let reset) = try await changes.next() else { return #expect(Bool(false), "no reset") }
        try await client.dispatch(Shop.Count())
        try await client.dispatch(Shop.Count())
        guard case .commit(let commit) = try await changes.next() else { return #expect(Bool(false), "no commit") }

        #expect(reset.reason == "cursor-lost")
        #expect(try reset.state("/orders", as: [String: Shop.Order].self) == ["a": order])
        #expect(try reset.state("/none", as: Int.self) == nil)
        #expect(commit.version == 2)
        #expect(try await counts.next() == 2)
    }

    @Test("a cancelled loop ends with its error")
    func cancelled() async throws {
        let client = try Line().client
        let loop = Task { for try await _ in client.changes() {} }
        let values = Task { for try await _ in client.values("/count", as: Int.self) {} }
        try await Task.sleep(for: .seconds(0.1))
        loop.cancel()
        values.cancel()

        await #expect(throws: CancellationError.self) { try await loop.value }
        await #expect(throws: CancellationError.self) { try await values.value }
    }

    @Test(
        "a call goes on where one token after the other ends during a wait, and ends where one is refused at once",
        arguments: [([1.1, 1.1], true), ([1.1, 0.0], false), ([0.0, 0.0], false)])
    func endedTokens(seconds: [Double], goesOn: Bool) async throws {
        let made = Mutex(0)
        let left = Mutex(seconds)
        let time = Mutex(ContinuousClock.now)
        let client = StateClient(
            Requests(
                base: "",
                tokens: {
                    made.withLock { made in
                        made += 1
                        return "\(made)"
                    }
                }, report: { _ in }, now: { time.withLock(\.self) }
            ) { _, _, _ in
                let pause = left.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                guard let pause else { return Answer(status: 200, body: Array("1".utf8)) }
                time.withLock { $0 += .seconds(pause) }
                return Answer(status: 401, body: Array(#"{"code":"unauthorized","detail":"no"}"#.utf8))
            })

        let value = try? await client.state("/count", as: Int.self)

        #expect(value == (goesOn ? 1 : nil))
        #expect(made.withLock(\.self) == (goesOn ? 3 : 2))
    }

    @Test("an error of what gives the token ends a call")
    func tokens() async throws {
        struct NoToken: Error {}
        let client = StateClient(
            Requests(base: "", tokens: { throw NoToken() }, report: { _ in }) { _, _, _ in
                Answer(status: 200, body: Array("1".utf8))
            })

        await #expect(throws: NoToken.self) { try await client.state("/count", as: Int.self) }
    }
}
