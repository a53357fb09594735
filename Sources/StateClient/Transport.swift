internal import Foundation

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
        return URLSession(configuration: configuration)
    }

    /// The URL to which the targets of calls are appended.
    static func base(of url: URL) -> String {
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) ?? URLComponents()
        (parts.query, parts.fragment) = (nil, nil)
        while parts.path.hasSuffix("/") { parts.path.removeLast() }
        if parts.path.isEmpty { parts.path = "/v1" }
        return parts.string ?? url.absoluteString
    }

    static let exchange: Requests.Exchange = { call, base, token in
        guard let url = URL(string: base + call.target), ["http", "https"].contains(url.scheme) else {
            throw StateClient.Problem.malformed("\(base) is no URL that begins with http:// or https://")
        }
        var request = URLRequest(url: url)
        if let body = call.body {
            request.httpMethod = "POST"
            request.httpBody = Data(body)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        if let key = call.key { request.setValue("\"\(key)\"", forHTTPHeaderField: "Idempotency-Key") }
        if let tag = call.tag { request.setValue(tag, forHTTPHeaderField: "If-None-Match") }
        let (data, response) = try await (call.body == nil ? reads : actions).data(for: request)
        guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        return Answer(
            status: response.statusCode, tag: response.value(forHTTPHeaderField: "ETag"),
            cursor: response.value(forHTTPHeaderField: "State-Cursor"),
            retryAfter: response.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) } ?? 0, body: Array(data))
    }
}
