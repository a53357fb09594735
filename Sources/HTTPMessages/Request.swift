package import HTTPTypes

/// An HTTP request as a value: complete, and not yet interpreted.
package struct Request: Sendable {
    /// What a transport shares between requests with equal heads.
    package final class Head: Sendable {
        package let method: HTTPRequest.Method
        package let target: String
        /// The header fields, in the order of the head.
        ///
        /// They are a list: HTTPTypes appends to its own by a general replacement of a range.
        package let list: [HTTPField]
        /// Which of the fields that the server reads are among them.
        package let known: RequestFields
        /// Whether it came over a Unix socket, which pages in a browser cannot reach under any name.
        package let isLocal: Bool
        package let memo: HeadMemo?
        /// What a transport shares between requests with equal header sections, whatever their targets.
        package let sectionMemo: HeadMemo?
        /// The trace that the request belongs to; nil where it names none.
        package let trace: TraceContext?

        /// Makes a head; one with a memo is for several requests.
        ///
        /// - Parameter known: which of the fields that the server reads are among `fields`; nil where it is not known.
        package init(
            method: HTTPRequest.Method, target: String, fields: [HTTPField], known: RequestFields? = nil,
            isLocal: Bool = false, memo: HeadMemo? = nil, sectionMemo: HeadMemo? = nil
        ) {
            self.method = method
            self.target = target
            list = fields
            self.known = known ?? RequestFields(in: fields)
            self.isLocal = isLocal
            self.memo = memo
            self.sectionMemo = sectionMemo
            // A head with several of them has a value with a comma, which is none.
            trace =
                self.known.contains(.traceParent)
                ? TraceContext(fields.lazy.filter { $0.name == .traceParent }.map(\.value).joined(separator: ","))
                : nil
        }
    }

    /// The request line and the fields.
    package let head: Head
    /// The whole body; empty when there is none.
    package var body: [UInt8]
    /// The client's address without its port, or its user on a Unix socket: the key of limits per client.
    package let client: String

    /// The method, as sent.
    package var method: HTTPRequest.Method { head.method }
    /// The raw request target: path and query exactly as sent, still percent-encoded.
    package var target: String { head.target }
    /// The header fields, in the order of the head; O(n) in their number.
    package var fields: HTTPFields { HTTPFields(head.list) }
    /// The value of `Host`, of which the transport allows one; nil without it.
    package var host: String? { self[.host] }
    /// The trace that the request belongs to; nil where it names none.
    package var trace: TraceContext? { head.trace }
    /// The memo of the request's head; nil for a head that the transport does not cache.
    package var memo: HeadMemo? { head.memo }

    /// Makes a request; only the target has no default.
    package init(
        method: HTTPRequest.Method = .get, target: String, fields: HTTPFields = [:], body: [UInt8] = [],
        client: String = "127.0.0.1"
    ) {
        self.init(Head(method: method, target: target, fields: Array(fields)), body: body, client: client)
    }

    /// Makes a request with a head that other requests may have, too.
    package init(_ head: Head, body: [UInt8] = [], client: String) {
        self.head = head
        self.body = body
        self.client = client
    }
}
