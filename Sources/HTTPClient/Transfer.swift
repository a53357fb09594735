internal import CCurl

/// One thread at a time uses it.
final class Transfer {
    private let curl: Curl
    let easy: UnsafeMutableRawPointer
    private var isClosed = false
    private var lines: UnsafeMutablePointer<curl_slist>?
    private var fields: [(name: String, value: String)] = []
    private var isHeadComplete = false
    /// libcurl does not bound them.
    private var linesBytes = 0
    private static let linesBytesMax = 256 << 10
    private var body: [UInt8] = []
    private var bodyBytesMax = 0
    private var sink: ((UnsafeRawBufferPointer) -> Bool)?
    private var isSent = false

    static func open() throws(HTTPConnection.Missing) -> Curl {
        var reason: UnsafePointer<CChar>?
        guard let curl = curl_open(&reason)?.pointee, curl.global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK else {
            let reason = reason.map { String(cString: $0) } ?? "it does not start"
            throw HTTPConnection.Missing(description: "libcurl cannot be opened (\(reason)): install libcurl4")
        }
        return curl
    }

    init(_ curl: Curl) throws(HTTPConnection.Missing) {
        guard let easy = curl.easy_init() else {
            throw HTTPConnection.Missing(description: "libcurl does not start")
        }
        self.curl = curl
        self.easy = easy
    }

    deinit { close() }

    /// No `multi` may have the handle any more.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        curl.easy_cleanup(easy)
        curl.slist_free_all(lines)
        lines = nil
    }

    /// 0 before it comes.
    var status: Int { curl_status(curl, easy) }

    func prepare(
        _ request: HTTPConnection.Request, _ tls: HTTPConnection.TLS,
        taking take: ((UnsafeRawBufferPointer) -> Bool)? = nil
    ) throws(HTTPConnection.Failure) {
        // Without `Expect` libcurl sends a large body at once.
        for field in request.fields + ["Expect:"] { lines = curl.slist_append(lines, field) }
        (fields, isHeadComplete, linesBytes, isSent) = ([], false, 0, false)
        (body, bodyBytesMax, sink) = ([], request.bodyBytesMax, take)
        try check(curl_set_fields(curl, easy, lines))
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
            try check(curl_set_long(curl, easy, CURLOPT_TIMEOUT_MS, Self.milliseconds(timeout)))
        }
        // libcurl limits the time to connect separately, to 300 seconds by default.
        if let timeout = request.connectTimeout ?? request.timeout {
            try check(curl_set_long(curl, easy, CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(timeout)))
        }
        // "In multi-threaded programs, set it to 1"; libcurl then leaves SIGPIPE alone, which the server ignores.
        try check(curl_set_long(curl, easy, CURLOPT_NOSIGNAL, 1))
        // The end of a transfer does not wait for a name server.
        try check(curl_set_long(curl, easy, CURLOPT_QUICK_EXIT, 1))
        // Not retained, here and below: libcurl calls this only while the caller runs the transfer.
        let context = Unmanaged.passUnretained(self).toOpaque()
        try check(
            curl_set_write(
                curl, easy,
                { bytes, _, count, context in
                    guard let bytes, let context else { return 0 }
                    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                    // "If it differs from the amount passed, the transfer gets aborted."
                    return transfer.take(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
                }, context))
        try check(
            curl_set_head(
                curl, easy,
                { bytes, _, count, context in
                    guard let bytes, let context else { return 0 }
                    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                    return transfer.take(line: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
                }, context))
        // libcurl sends a request again, also a POST, where a connection that was used before ends without an answer. The
        // server may have carried it out, so that is left to the caller.
        try check(
            curl_set_ask(
                curl, easy,
                { context, _, _, _, _ in
                    guard let context else { return CURL_PREREQFUNC_ABORT }
                    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                    return exchange(&transfer.isSent, with: true) ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK
                }, context))
    }

    /// At most some 24 days, and not 0, which is no limit.
    private static func milliseconds(_ time: Duration) -> Int {
        max(1, Int(min(time, .milliseconds(Int32.max)) / .milliseconds(1)))
    }

    func reset() {
        curl.easy_reset(easy)
        curl.slist_free_all(lines)
        lines = nil
        sink = nil
    }

    func outcome(_ code: CURLcode) throws(HTTPConnection.Failure) -> HTTPConnection.Response {
        switch code {
        // libcurl takes a head that the connection cuts off for a response without a body.
        case CURLE_OK where !isHeadComplete: throw .disconnected(reason: "the connection has ended within the head")
        case CURLE_OK:
            return HTTPConnection.Response(
                status: status, fields: fields, retryAfter: retryAfter, body: body)
        case CURLE_OPERATION_TIMEDOUT: throw .timedOut
        case CURLE_WRITE_ERROR: throw .tooLong
        case CURLE_ABORTED_BY_CALLBACK: throw .disconnected(reason: "the connection has ended before the answer")
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE:
            guard !isSent else { throw .disconnected(reason: reason(code)) }
            throw .unreachable(reason: reason(code))
        default: throw .disconnected(reason: reason(code))
        }
    }

    /// 0 without the field; the most that 64 bits hold for a larger number.
    private var retryAfter: Int {
        let seconds = curl_retry_after(curl, easy)
        // libcurl takes such a number for no number.
        let isLong = fields.contains { name, value in
            name.lowercased() == "retry-after" && !value.isEmpty
                && value.utf8.allSatisfy { (0x30...0x39).contains($0) } && Int(value) == nil
        }
        return isLong ? .max : seconds
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let sink { return sink(bytes) }
        guard bytes.count <= bodyBytesMax - body.count else { return false }
        body += bytes
        return true
    }

    /// False if there are too many lines; a status line begins another head, behind that of an interim response.
    private func take(line bytes: UnsafeRawBufferPointer) -> Bool {
        linesBytes += bytes.count
        guard linesBytes <= Self.linesBytesMax else { return false }
        let line = String(decoding: bytes, as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            (fields, isHeadComplete) = ([], false)
        } else if line == "\r\n" || line == "\n" {
            // A line may also end with a line feed alone (RFC 9112, section 2.2).
            isHeadComplete = true
        } else if !isHeadComplete {
            take(field: line)
        }
        return true
    }

    private func take(field line: String) {
        guard let colon = line.firstIndex(of: ":") else { return }
        var value = line[line.index(after: colon)...].drop { $0.isWhitespace }
        while value.last?.isWhitespace == true { value.removeLast() }
        fields.append((String(line[..<colon]), String(value)))
    }

    private func reason(_ code: CURLcode) -> String {
        curl.easy_strerror(code).map { String(cString: $0) } ?? "unknown"
    }

    private func check(_ code: CURLcode) throws(HTTPConnection.Failure) {
        guard code == CURLE_OK else { throw .unreachable(reason: reason(code)) }
    }
}
