internal import CCurl
internal import Synchronization

/// A client of HTTP servers on libcurl: one request after the other, on connections that it keeps open.
///
/// It connects to the address of a request only: it follows no redirect and uses no proxy from the environment. libcurl
/// verifies TLS certificates against those of the system, or of ``TLS``. A request occupies its thread until it ends.
///
/// Threads: one at a time may call `perform`; any thread may call `cancel` and `interrupt`.
// Sendable is unchecked: `perform` alone uses what is not `let`, and `isBusy` traps where two threads call it at once.
// libcurl's manual allows one call on `multi` from any thread, curl_multi_wakeup, and the other methods make no other.
package final class HTTPConnection: @unchecked Sendable {
    /// A request.
    package struct Request: Sendable {
        /// The method in capitals.
        package var method: String
        /// An absolute address with http or https.
        package var address: String
        /// Whole fields, such as `Accept: application/json`.
        package var fields: [String]
        /// The body; nil for none.
        package var body: [UInt8]?
        /// How long the whole request may take; nil for as long as it does.
        package var timeout: Duration?
        /// How long a connection may take to be made; nil for ``timeout``.
        package var connectTimeout: Duration?
        /// The most bytes of the response's body.
        package var bodyBytesMax: Int
        /// The only status whose body is of use, or nil for every one: any other response ends with its head.
        package var statusWithBody: Int?

        package init(
            _ address: String, method: String = "GET", fields: [String] = [], body: [UInt8]? = nil,
            within timeout: Duration?, bodyBytesMax: Int
        ) {
            (self.address, self.method, self.fields, self.body) = (address, method, fields, body)
            (self.timeout, self.bodyBytesMax) = (timeout, bodyBytesMax)
        }
    }

    /// A response.
    package struct Response: Sendable {
        package var status: Int
        /// The header fields, in their order; names as sent.
        package var fields: [(name: String, value: String)] = []
        /// The seconds that its field `Retry-After` asks for; 0 without one, `Int.max` for more than 64 bits hold.
        package var retryAfter = 0
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
    package struct TLS: Hashable, Sendable {
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
    private let transfer: Transfer
    private let multi: UnsafeMutableRawPointer
    private let tls: TLS
    private let isCancelled = Atomic(false)
    private let isInterrupted = Atomic(false)
    private let isBusy = Atomic(false)

    /// Makes a client without a connection, and opens libcurl for the life of the process.
    ///
    /// - Throws: ``Missing`` when the machine has no libcurl, or one that lacks a function.
    package init(tls: TLS = TLS()) throws(Missing) {
        curl = try Transfer.open()
        transfer = try Transfer(curl)
        guard let multi = curl.multi_init() else { throw Missing(description: "libcurl does not start") }
        self.multi = multi
        self.tls = tls
    }

    deinit {
        // The manual of curl_multi_cleanup demands this order.
        transfer.close()
        _ = curl.multi_cleanup(multi)
    }

    /// Ends the request that runs, and refuses every later one.
    package func cancel() {
        isCancelled.store(true, ordering: .releasing)
        // The call fails only where libcurl could not make a socket pair; `perform` then checks within a second.
        _ = curl.multi_wakeup(multi)
    }

    /// Ends the request that runs, which throws ``Failure/cancelled``; where none runs it does nothing.
    package func interrupt() {
        isInterrupted.store(true, ordering: .releasing)
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
        defer { transfer.reset() }
        isInterrupted.store(false, ordering: .relaxed)
        try transfer.prepare(request, tls, taking: take)
        try check(curl.multi_add_handle(multi, transfer.easy))
        defer { _ = curl.multi_remove_handle(multi, transfer.easy) }
        var runningCount: Int32 = 0
        repeat {
            try check(curl.multi_perform(multi, &runningCount))
            guard !isCancelled.load(ordering: .acquiring), !isInterrupted.load(ordering: .acquiring) else {
                throw .cancelled
            }
            if let wanted = request.statusWithBody, transfer.status >= 200, transfer.status != wanted {
                return Response(status: transfer.status, body: [])
            }
            if runningCount > 0 { try check(curl.multi_poll(multi, nil, 0, 1000, nil)) }
        } while runningCount > 0
        var leftCount: Int32 = 0
        guard let message = curl.multi_info_read(multi, &leftCount), message.pointee.msg == CURLMSG_DONE else {
            preconditionFailure("libcurl reports how each transfer ended")
        }
        return try transfer.outcome(message.pointee.data.result)
    }

    private func check(_ code: CURLMcode) throws(Failure) {
        guard code != CURLM_OK else { return }
        throw .unreachable(reason: curl.multi_strerror(code).map { String(cString: $0) } ?? "unknown")
    }
}
