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
    package struct Request: Sendable {
        package var method: String
        /// Absolute, with http or https.
        package var address: String
        /// Whole fields, such as `Accept: application/json`.
        package var fields: [String]
        package var body: [UInt8]?
        /// Nil for as long as it takes.
        package var timeout: Duration?
        /// Nil for ``timeout``.
        package var connectTimeout: Duration?
        package var bodyBytesMax: Int
        /// Nil for every status: any other response ends with its head.
        package var statusWithBody: Int?

        package init(
            _ address: String, method: String = "GET", fields: [String] = [], body: [UInt8]? = nil,
            within timeout: Duration?, bodyBytesMax: Int
        ) {
            (self.address, self.method, self.fields, self.body) = (address, method, fields, body)
            (self.timeout, self.bodyBytesMax) = (timeout, bodyBytesMax)
        }
    }

    package struct Response: Sendable {
        package var status: Int
        package var fields: [(name: String, value: String)] = []
        /// 0 without the field, `Int.max` for more than 64 bits hold.
        package var retryAfter = 0
        /// Empty where the caller takes its parts.
        package var body: [UInt8]
    }

    package enum Failure: Error {
        case cancelled
        case timedOut
        /// Longer than the limit, or the caller wants no more.
        case tooLong
        /// The server has none of the request; the reason quotes no part of the response.
        case unreachable(reason: String)
        case disconnected(reason: String)
    }

    /// In PEM; nil for the default.
    package struct TLS: Hashable, Sendable {
        package var authorities: String?
        package var certificate: String?
        package var key: String?

        package init() {}
    }

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

    /// Opens libcurl for the life of the process; throws where the machine has none, or one that lacks a function.
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

    package func cancel() {
        isCancelled.store(true, ordering: .releasing)
        // The call fails only where libcurl could not make a socket pair; `perform` then checks within a second.
        _ = curl.multi_wakeup(multi)
    }

    /// The request throws ``Failure/cancelled``; where none runs, nothing happens.
    package func interrupt() {
        isInterrupted.store(true, ordering: .releasing)
        _ = curl.multi_wakeup(multi)
    }

    /// Any status is a response; `take` gets each part of the body and returns whether it wants more, nil collects it.
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
