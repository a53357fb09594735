internal import CCurl
internal import Synchronization

/// A client of HTTP servers on libcurl: one request after the other, on connections that it keeps open.
///
/// It connects to the address of a request only: it follows no redirect and uses no proxy from the environment. libcurl
/// verifies TLS certificates against those of the system, or of ``TLS``. A request occupies its thread until it ends.
///
/// Threads: one at a time may call `perform`; any thread may call `cancel`.
// Sendable is unchecked: `perform` alone uses what is not `let`, and `isBusy` traps where two threads call it at once.
// libcurl's manual allows one call on `multi` from any thread, curl_multi_wakeup, and `cancel` makes no other.
package final class HTTPConnection: @unchecked Sendable {
    /// A request.
    package struct Request: Sendable {
        /// The method in capitals.
        package var method = "GET"
        /// An absolute address with http or https.
        package var address: String
        /// Whole fields, such as `Accept: application/json`.
        package var fields: [String] = []
        /// The body; nil for none.
        package var body: [UInt8]?
        /// How long the whole request may take; nil for as long as it does.
        package var timeout: Duration?
        /// The most bytes of the response's body.
        package var bodyBytesMax: Int
        /// The only status whose body is of use, or nil for every one: any other response ends with its head.
        package var statusWithBody: Int?

        package init(_ address: String, within timeout: Duration?, bodyBytesMax: Int) {
            self.address = address
            self.timeout = timeout
            self.bodyBytesMax = bodyBytesMax
        }
    }

    /// A response.
    package struct Response: Sendable {
        package var status: Int
        /// The body; empty where the caller takes its parts.
        package var body: [UInt8]
    }

    package enum Failure: Error {
        /// ``cancel()`` has been called.
        case cancelled
        case timedOut
        /// The body is longer than the limit, or the caller wants no more of it.
        case tooLong
        /// No connection was made, so the server has none of the request; the reason quotes no part of the response.
        case unreachable(reason: String)
        /// The connection failed, or the response is not complete HTTP; the reason quotes no part of the response.
        case disconnected(reason: String)
    }

    /// Files of certificates and keys in PEM, each nil for the default.
    package struct TLS: Sendable {
        /// The certificates of the authorities that may have signed a server's.
        package var authorities: String?
        package var certificate: String?
        package var key: String?

        package init(authorities: String? = nil, certificate: String? = nil, key: String? = nil) {
            self.authorities = authorities
            self.certificate = certificate
            self.key = key
        }
    }

    /// Why libcurl cannot be opened, as a sentence.
    package struct Missing: Error, CustomStringConvertible {
        package let description: String
    }

    private let curl: Curl
    private let easy: UnsafeMutableRawPointer
    private let multi: UnsafeMutableRawPointer
    private let tls: TLS
    private let isCancelled = Atomic(false)
    private let isBusy = Atomic(false)
    private var body: [UInt8] = []
    private var bodyBytesMax = 0
    private var sink: ((UnsafeRawBufferPointer) -> Bool)?

    /// Makes a client without a connection, and opens libcurl for the life of the process.
    ///
    /// - Throws: ``Missing`` when the machine has no libcurl, or one that lacks a function.
    package init(tls: TLS = TLS()) throws(Missing) {
        var reason: UnsafePointer<CChar>?
        guard let curl = curl_open(&reason)?.pointee, curl.global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK,
            let easy = curl.easy_init()
        else {
            let reason = reason.map { String(cString: $0) } ?? "it does not start"
            throw Missing(description: "libcurl cannot be opened (\(reason)): install libcurl4")
        }
        guard let multi = curl.multi_init() else {
            curl.easy_cleanup(easy)
            throw Missing(description: "libcurl does not start")
        }
        self.curl = curl
        self.easy = easy
        self.multi = multi
        self.tls = tls
    }

    deinit {
        // The manual of curl_multi_cleanup demands this order.
        curl.easy_cleanup(easy)
        _ = curl.multi_cleanup(multi)
    }

    /// Ends the request that runs, and refuses every later one.
    package func cancel() {
        isCancelled.store(true, ordering: .releasing)
        // The call fails only where libcurl could not make a socket pair; `perform` then checks within a second.
        _ = curl.multi_wakeup(multi)
    }

    /// Sends a request and returns the response, whatever its status.
    ///
    /// - Parameter take: takes each part of the body as it comes, and returns whether it wants more; nil collects the body.
    package func perform(
        _ request: Request, taking take: ((UnsafeRawBufferPointer) -> Bool)? = nil
    ) throws(Failure) -> Response {
        precondition(!isBusy.exchange(true, ordering: .acquiring), "one request at a time")
        defer { isBusy.store(false, ordering: .releasing) }
        var fields: UnsafeMutablePointer<curl_slist>?
        // Without `Expect` libcurl sends a large body at once.
        for field in request.fields + ["Expect:"] { fields = curl.slist_append(fields, field) }
        body = []
        bodyBytesMax = request.bodyBytesMax
        sink = take
        defer {
            curl.easy_reset(easy)
            curl.slist_free_all(fields)
            sink = nil
        }
        try prepare(request, fields)
        try check(curl.multi_add_handle(multi, easy))
        defer { _ = curl.multi_remove_handle(multi, easy) }
        var runningCount: Int32 = 0
        repeat {
            try check(curl.multi_perform(multi, &runningCount))
            guard !isCancelled.load(ordering: .acquiring) else { throw .cancelled }
            let status = curl_status(curl, easy)
            if let wanted = request.statusWithBody, status >= 200, status != wanted {
                return Response(status: status, body: [])
            }
            if runningCount > 0 { try check(curl.multi_poll(multi, nil, 0, 1000, nil)) }
        } while runningCount > 0
        let code = outcome()
        switch code {
        case CURLE_OK: return Response(status: curl_status(curl, easy), body: body)
        case CURLE_OPERATION_TIMEDOUT: throw .timedOut
        case CURLE_WRITE_ERROR: throw .tooLong
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE:
            throw .unreachable(reason: reason(code))
        default: throw .disconnected(reason: reason(code))
        }
    }

    private func prepare(_ request: Request, _ fields: UnsafeMutablePointer<curl_slist>?) throws(Failure) {
        try check(curl_set_fields(curl, easy, fields))
        try check(curl_set_text(curl, easy, CURLOPT_URL, request.address))
        try check(curl_set_text(curl, easy, CURLOPT_PROTOCOLS_STR, "http,https"))
        try check(curl_set_text(curl, easy, CURLOPT_PROXY, ""))
        if let body = request.body {
            try check(curl_set_body(curl, easy, body, body.count))
        }
        try check(curl_set_text(curl, easy, CURLOPT_CUSTOMREQUEST, request.method))
        if let file = tls.authorities { try check(curl_set_text(curl, easy, CURLOPT_CAINFO, file)) }
        if let file = tls.certificate { try check(curl_set_text(curl, easy, CURLOPT_SSLCERT, file)) }
        if let file = tls.key { try check(curl_set_text(curl, easy, CURLOPT_SSLKEY, file)) }
        if let timeout = request.timeout {
            // libcurl limits the time to connect separately, to 300 seconds by default.
            let milliseconds = Int(timeout / .milliseconds(1))
            try check(curl_set_long(curl, easy, CURLOPT_TIMEOUT_MS, milliseconds))
            try check(curl_set_long(curl, easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds))
        }
        // "In multi-threaded programs, set it to 1"; libcurl then leaves SIGPIPE alone, which the server ignores.
        try check(curl_set_long(curl, easy, CURLOPT_NOSIGNAL, 1))
        // What ends a transfer does not wait for a name server.
        try check(curl_set_long(curl, easy, CURLOPT_QUICK_EXIT, 1))
        try check(
            curl_set_write(
                curl, easy,
                { bytes, _, count, context in
                    guard let bytes, let context else { return 0 }
                    // Not retained: libcurl calls this only within `perform`.
                    let connection = Unmanaged<HTTPConnection>.fromOpaque(context).takeUnretainedValue()
                    // "If it differs from the amount passed, the transfer gets aborted."
                    return connection.take(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
                }, Unmanaged.passUnretained(self).toOpaque()))
    }

    /// Takes a part of the body; returns false if the body exceeds the limit, or the caller wants no more.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let sink { return sink(bytes) }
        guard bytes.count <= bodyBytesMax - body.count else { return false }
        body += bytes
        return true
    }

    /// Returns how the transfer ended; it must have ended.
    private func outcome() -> CURLcode {
        var leftCount: Int32 = 0
        guard let message = curl.multi_info_read(multi, &leftCount), message.pointee.msg == CURLMSG_DONE else {
            preconditionFailure("libcurl reports how each transfer ended")
        }
        return message.pointee.data.result
    }

    private func reason(_ code: CURLcode) -> String {
        curl.easy_strerror(code).map { String(cString: $0) } ?? "unknown"
    }

    private func check(_ code: CURLcode) throws(Failure) {
        guard code == CURLE_OK else { throw .unreachable(reason: reason(code)) }
    }

    private func check(_ code: CURLMcode) throws(Failure) {
        guard code != CURLM_OK else { return }
        throw .unreachable(reason: curl.multi_strerror(code).map { String(cString: $0) } ?? "unknown")
    }
}
