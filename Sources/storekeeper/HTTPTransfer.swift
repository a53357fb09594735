internal import CCurl
internal import Dispatch
internal import StateServer
internal import Synchronization

/// One GET request through libcurl, with limits on its time and on the bytes of the body.
///
/// It connects to the given address only: it follows no redirect and uses no proxy from the environment. libcurl
/// verifies TLS certificates against those of the system. A transfer occupies one thread until it ends; a cancelled
/// transfer ends at once.
///
/// Threads: `perform` runs once, on a thread of `queue`; any thread may call `cancel`.
// Sendable is unchecked: `perform` alone uses `easy` and `body`. libcurl's manual allows one call on `multi` from any
// thread, curl_multi_wakeup, and `cancel` makes no other. `deinit` frees both after the last use.
final class HTTPTransfer: @unchecked Sendable {
    struct Response {
        let status: Int
        /// The bytes of the body; empty unless the status is 200.
        let body: [UInt8]
    }

    enum Failure: Error {
        case cancelled
        case timedOut
        /// The body is longer than the limit.
        case tooLong
        /// The connection failed, or the response is not complete HTTP; the reason quotes no part of the response.
        case disconnected(reason: String)
    }

    private static let queue = DispatchQueue(label: "storekeeper.transfers", attributes: .concurrent)

    private let curl: Curl
    private let easy: UnsafeMutableRawPointer
    private let multi: UnsafeMutableRawPointer
    private let fields: UnsafeMutablePointer<curl_slist>?
    private let bodyBytesMax: Int
    private var body: [UInt8] = []
    private let isCancelled = Atomic(false)

    /// Opens libcurl, for the life of the process: a server that fetches nothing does without it.
    ///
    /// - Throws: `SettingsFault` when the machine has no libcurl, or one that lacks a function.
    static func open() throws(SettingsFault) -> Curl {
        var reason: UnsafePointer<CChar>?
        guard let curl = curl_open(&reason)?.pointee, curl.global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK else {
            throw SettingsFault(
                description: """
                    films_base_url is set, and libcurl, which fetches the films, cannot be opened \
                    (\(reason.map { String(cString: $0) } ?? "it does not start")): install libcurl4, or set \
                    films_base_url to none
                    """)
        }
        return curl
    }

    /// Sends a GET request to an http or https address and returns the response.
    static func get(
        _ address: String, accept: String, within timeout: Duration, bodyBytesMax: Int, curl: Curl
    ) async throws(Failure) -> Response {
        let transfer = try HTTPTransfer(address, accept, within: timeout, bodyBytesMax: bodyBytesMax, curl: curl)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: Result { () throws(Failure) in try transfer.perform() }) }
            }
        } onCancel: {
            transfer.cancel()
        }
        return try result.get()
    }

    private init(
        _ address: String, _ accept: String, within timeout: Duration, bodyBytesMax: Int, curl: Curl
    ) throws(Failure) {
        guard let easy = curl.easy_init() else { throw Self.failure(CURLE_FAILED_INIT, curl) }
        guard let multi = curl.multi_init() else {
            curl.easy_cleanup(easy)
            throw Self.failure(CURLE_FAILED_INIT, curl)
        }
        self.curl = curl
        self.easy = easy
        self.multi = multi
        fields = curl.slist_append(nil, "Accept: \(accept)")
        self.bodyBytesMax = bodyBytesMax
        guard fields != nil else { throw Self.failure(CURLE_OUT_OF_MEMORY, curl) }
        try check(curl_set_fields(curl, easy, fields))
        try check(curl_set_text(curl, easy, CURLOPT_URL, address))
        try check(curl_set_text(curl, easy, CURLOPT_PROTOCOLS_STR, "http,https"))
        try check(curl_set_text(curl, easy, CURLOPT_PROXY, ""))
        // libcurl limits the time to connect separately, to 300 seconds by default.
        let milliseconds = Int(timeout / .milliseconds(1))
        try check(curl_set_long(curl, easy, CURLOPT_TIMEOUT_MS, milliseconds))
        try check(curl_set_long(curl, easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds))
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
                    let transfer = Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
                    // "If it differs from the amount passed, the transfer gets aborted."
                    return transfer.take(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
                }, Unmanaged.passUnretained(self).toOpaque()))
        try check(curl.multi_add_handle(multi, easy))
    }

    deinit {
        // The manual of curl_multi_cleanup demands this order.
        _ = curl.multi_remove_handle(multi, easy)
        curl.easy_cleanup(easy)
        _ = curl.multi_cleanup(multi)
        curl.slist_free_all(fields)
    }

    private func cancel() {
        isCancelled.store(true, ordering: .releasing)
        // The call fails only where libcurl could not make a socket pair; `perform` then checks within a second.
        _ = curl.multi_wakeup(multi)
    }

    private func perform() throws(Failure) -> Response {
        var runningCount: Int32 = 0
        while true {
            try check(curl.multi_perform(multi, &runningCount))
            guard !isCancelled.load(ordering: .acquiring) else { throw .cancelled }
            let status = curl_status(curl, easy)
            if status >= 200, status != 200 { return Response(status: status, body: []) }
            guard runningCount > 0 else { break }
            try check(curl.multi_poll(multi, nil, 0, 1000, nil))
        }
        switch outcome() {
        case CURLE_OK: return Response(status: curl_status(curl, easy), body: body)
        case CURLE_OPERATION_TIMEDOUT: throw .timedOut
        case CURLE_WRITE_ERROR: throw .tooLong
        case let code: throw Self.failure(code, curl)
        }
    }

    /// Appends a part of the body; returns false if the body exceeds the limit.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
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

    private static func failure(_ code: CURLcode, _ curl: Curl) -> Failure {
        .disconnected(reason: curl.easy_strerror(code).map { String(cString: $0) } ?? "unknown")
    }

    private func check(_ code: CURLcode) throws(Failure) {
        guard code == CURLE_OK else { throw Self.failure(code, curl) }
    }

    private func check(_ code: CURLMcode) throws(Failure) {
        guard code != CURLM_OK else { return }
        throw .disconnected(reason: curl.multi_strerror(code).map { String(cString: $0) } ?? "unknown")
    }
}
