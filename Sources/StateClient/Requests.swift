internal import Foundation
internal import StateJSON
internal import Synchronization

struct Call: Sendable {
    /// Path and query below the base URL, percent-encoded.
    var target: String
    var method: String
    var body: [UInt8]?
    var key: String?
    var tag: String?

    init(_ target: String, method: String? = nil, body: [UInt8]? = nil, key: String? = nil, tag: String? = nil) {
        (self.target, self.body, self.key, self.tag) = (target, body, key, tag)
        self.method = method ?? (body == nil ? "GET" : "POST")
    }
}

struct Answer: Sendable {
    var status: Int
    var tag: String?
    var cursor: String?
    /// In seconds.
    var retryAfter = 0
    var body: [UInt8]
}

struct Requests: Sendable {
    /// Sends a request once, to a base URL and with a token; it throws where there is no answer, or not all of it.
    typealias Exchange = @Sendable (_ call: Call, _ base: String, _ token: String?) async throws -> Answer

    let base: String
    let tokens: @Sendable () async throws -> String?
    let report: @Sendable (StateClient.Problem) -> Void
    var now: @Sendable () -> ContinuousClock.Instant = { .now }
    let exchange: Exchange

    func send(_ call: Call, within limit: Duration?) async throws -> Answer {
        var patience = Patience(limit: limit)
        let start = now()
        var refused: String?
        while true {
            let token = try await tokens()
            if let refused, refused == token { try await Task.sleep(for: .seconds(1)) }
            let sent = now()
            let (answer, problem) = try await attempt(call, token)
            guard let problem else { return answer }
            // A token can have ended while the request was waiting, and a new one counts after a moment.
            let hasEnded = token != refused && now() - sent > .seconds(1)
            if problem.status == 401, token != nil, hasEnded || refused == nil {
                refused = token
                continue
            }
            let passed = now() - start
            guard let pause = patience.pause(after: problem, passed, random: .random(in: 0..<1)) else { throw problem }
            report(problem)
            try await Task.sleep(for: pause)
        }
    }

    private func attempt(_ call: Call, _ token: String?) async throws -> (Answer, StateClient.Problem?) {
        guard [token, call.key].allSatisfy({ $0?.utf8.allSatisfy { (0x20...0x7E).contains($0) } != false }) else {
            throw StateClient.Problem.malformed("a token or a key has characters that a header field cannot have")
        }
        do {
            let answer = try await exchange(call, base, token)
            return (answer, StateClient.Problem(answer))
        } catch let problem as StateClient.Problem {
            throw problem
        } catch {
            try Task.checkCancellation()
            let detail = "\(base) does not answer: \(error.localizedDescription)"
            return (Answer(status: 0, body: []), StateClient.Problem(status: 0, code: "no-answer", detail: detail))
        }
    }
}

struct Patience {
    /// Nil for ever.
    let limit: Duration?
    var failures = 0

    /// The time to wait after an attempt, or nil if the request is not to be sent again.
    ///
    /// It is the time that the server asks for, and at random up to ten seconds more: the clients of a server do not
    /// come back at once.
    mutating func pause(after problem: StateClient.Problem, _ passed: Duration, random: Double) -> Duration? {
        guard problem.isPassing else { return nil }
        let backoff = min(10, 0.5 * pow(1.5, Double(failures)))
        failures += 1
        let pause = Duration.seconds(problem.retryAfter) + .seconds(random * backoff)
        guard let limit else { return pause }
        return passed + pause <= limit ? pause : nil
    }
}

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

enum Transport {
    /// All clients of a process share the two sessions: a session is never given back.
    ///
    /// The server answers a wait within 25 s. An action without an answer is sent again after 20 s.
    private static let (reads, actions) = (session(timeout: 60), session(timeout: 20))

    private static func session(timeout: TimeInterval) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        // On Linux the timeout of a request has no effect, and that of its session has.
        configuration.timeoutIntervalForRequest = timeout
        // Each wait holds a connection: with the six of the default, six loops would keep every action waiting.
        configuration.httpMaximumConnectionsPerHost = 10_000
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.httpShouldSetCookies = false
        return URLSession(configuration: configuration, delegate: Redirects(), delegateQueue: nil)
    }

    /// Refuses each redirect: a POST could become a GET, whose answer is of something else.
    private final class Redirects: NSObject, URLSessionTaskDelegate {
        func urlSession(
            _: URLSession, task _: URLSessionTask, willPerformHTTPRedirection _: HTTPURLResponse,
            newRequest _: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
        ) { completionHandler(nil) }
    }

    static func base(of url: URL) -> String {
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) ?? URLComponents()
        (parts.query, parts.fragment) = (nil, nil)
        while parts.path.hasSuffix("/") { parts.path.removeLast() }
        if parts.path.isEmpty { parts.path = "/v1" }
        return parts.string ?? url.absoluteString
    }

    static let exchange: Requests.Exchange = { call, base, token in
        guard let url = URL(string: base + call.target), ["http", "https"].contains(url.scheme) else {
            throw StateClient.Problem.malformed("\(base) is not a URL that begins with http:// or https://")
        }
        var request = URLRequest(url: url)
        request.httpMethod = call.method
        if let body = call.body {
            request.httpBody = Data(body)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        if let key = call.key { request.setValue("\"\(key)\"", forHTTPHeaderField: "Idempotency-Key") }
        if let tag = call.tag { request.setValue(tag, forHTTPHeaderField: "If-None-Match") }
        let (data, response) = try await (call.method == "GET" ? reads : actions).data(for: request)
        guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        if [301, 302, 303, 307, 308].contains(response.statusCode) {
            let to = response.value(forHTTPHeaderField: "Location") ?? "an address that it does not tell"
            let detail = "\(base) redirects to \(to): give the client the address that it leads to"
            throw StateClient.Problem(status: response.statusCode, code: "redirected", detail: detail)
        }
        return Answer(
            status: response.statusCode, tag: response.value(forHTTPHeaderField: "ETag"),
            cursor: response.value(forHTTPHeaderField: "State-Cursor"),
            retryAfter: response.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) } ?? 0, body: Array(data))
    }
}

/// The order of a client's actions: one is sent when those before it have ended.
///
/// Any thread may call.
final class Outbox: Sendable {
    /// The calls that have not ended: the first is sent; another's stream ends when it is the first or its time is up.
    private let entries = Mutex<[AsyncStream<Never>.Continuation]>([])

    nonisolated(nonsending) func inTurn(
        within limit: Duration, _ send: (_ left: Duration) async throws -> Answer
    ) async throws -> Answer {
        let start = ContinuousClock.now
        let (turn, entry) = AsyncStream<Never>.makeStream()
        let isFirst = entries.withLock { entries in
            entries.append(entry)
            return entries.count == 1
        }
        defer { leave(entry) }
        if !isFirst {
            let timer = Task {
                try await Task.sleep(for: limit)
                entry.finish()
            }
            defer { timer.cancel() }
            for await _ in turn {}
            try Task.checkCancellation()
            guard entries.withLock({ $0.first == entry }) else {
                let detail = "the actions before this one have had no answer, so it was not sent"
                throw StateClient.Problem(status: 0, code: "no-answer", detail: detail)
            }
        }
        return try await send(max(.zero, limit - (ContinuousClock.now - start)))
    }

    private func leave(_ entry: AsyncStream<Never>.Continuation) {
        let next = entries.withLock { entries in
            let wasFirst = entries.first == entry
            entries.removeAll { $0 == entry }
            return wasFirst ? entries.first : nil
        }
        next?.finish()
    }
}

struct Route: Sendable {
    /// Below the base URL, percent-encoded.
    let target: String
    /// The filter of the commits that can change the value, for a query; empty for a view, which any commit can change.
    let filter: String
    let rest: JSONPointer
    /// The parameters of a view or a query, each behind `&`.
    private let parameters: String

    init(_ path: String, _ parameters: String = "") throws(StateClient.Problem) {
        self.parameters = parameters
        if path.hasPrefix("view:"), ![".", ".."].contains(path.dropFirst(5)) {
            (target, filter, rest) = ("/views/" + percentEncoded(path.dropFirst(5)), "", .root)
            return
        }
        let tokens = path.split(separator: "/", omittingEmptySubsequences: false)
        // A URL cannot hold these tokens: the value around them is read.
        let odd = tokens.dropFirst().firstIndex { ["", ".", ".."].contains($0) } ?? tokens.endIndex
        guard tokens.first == "", parameters.isEmpty || odd == tokens.endIndex,
            let rest = JSONPointer(text: tokens[odd...].map { "/\($0)" }.joined())
        else {
            let detail = "a path is a JSON Pointer or view:<name>"
            throw StateClient.Problem(status: 400, code: "bad-pointer", detail: detail)
        }
        target = "/state" + tokens[..<odd].dropFirst().map { "/" + percentEncoded($0) }.joined()
        filter = parameter("path", path)
        self.rest = rest
    }

    func target(waiting: Bool) -> String {
        let query = parameters + (waiting ? "&wait=25" : "")
        return query.isEmpty ? target : target + "?" + query.dropFirst()
    }
}

func parameter(_ name: String, _ value: String?) -> String {
    value.map { "&\(name)=" + percentEncoded($0) } ?? ""
}

private let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

func percentEncoded(_ text: some StringProtocol) -> String {
    // Nil is for texts that UTF-8 cannot encode, of which Swift has none.
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
}
