package import HTTPTypes
import Synchronization

package struct Request: Sendable {
    package final class Head: Sendable {
        package let method: HTTPRequest.Method
        package let target: String
        /// The fields that are not the request's own, in a list: HTTPTypes appends by a general replacement of a range.
        package let list: [HTTPField]
        package let known: RequestFields
        /// Whether it came over a Unix socket, which pages in a browser cannot reach under any name.
        package let isLocal: Bool
        private let slot = Mutex<(any AnyObject & Sendable)?>(nil)

        package init(method: HTTPRequest.Method, target: String, fields: [HTTPField], isLocal: Bool = false) {
            self.method = method
            self.target = target
            list = fields
            known = RequestFields(in: fields)
            self.isLocal = isLocal
        }

        package init(method: HTTPRequest.Method, target: String, fieldsOf other: Head) {
            (self.method, self.target) = (method, target)
            (list, known, isLocal) = (other.list, other.known, other.isLocal)
        }

        /// The handler's memory of the head; any thread may ask.
        package var remembered: (any AnyObject & Sendable)? { slot.withLock(\.self) }

        package func remember(_ value: some AnyObject & Sendable) { slot.withLock { $0 = value } }
    }

    package let head: Head
    package let own: OwnFields?
    package var body: [UInt8]
    /// The client's address without its port, or its user on a Unix socket: the key of limits per client.
    package let client: String

    package var method: HTTPRequest.Method { head.method }
    /// The raw request target: path and query exactly as sent, still percent-encoded.
    package var target: String { head.target }
    /// The header fields, the request's own ones last; O(n) in their number.
    package var fields: HTTPFields { HTTPFields(head.list + (own?.list ?? [])) }
    package var host: String? { self[.host] }
    package var trace: TraceContext? { own?.trace }

    package init(
        method: HTTPRequest.Method = .get, target: String, fields: HTTPFields = [:], body: [UInt8] = [],
        client: String = "127.0.0.1"
    ) {
        var shared: [HTTPField] = []
        var own: [(field: RequestField, value: String)] = []
        for field in fields {
            let known = RequestField(canonicalName: field.name.canonicalName)
            if let known, OwnFields.fields.contains(known) {
                own.append((known, field.value))
            } else {
                shared.append(field)
            }
        }
        self.init(Head(method: method, target: target, fields: shared), OwnFields(own), body: body, client: client)
    }

    package init(_ head: Head, _ own: OwnFields? = nil, body: [UInt8] = [], client: String) {
        self.head = head
        self.own = own
        self.body = body
        self.client = client
    }
}
