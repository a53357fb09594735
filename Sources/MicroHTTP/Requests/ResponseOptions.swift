import HTTPMessages
import HTTPTypes

/// The properties of a request that determine the form of its answer on a parked connection.
struct ResponseOptions {
    /// Whether the answer has no body.
    var isHead: Bool
    /// Whether the connection closes after the answer: the client asks for it, or its version of HTTP needs it.
    var endsConnection: Bool
    /// Whether a stream comes in chunks; otherwise it ends with its connection.
    var isChunked: Bool
    /// Whether a handler works on the request, so that a stop leaves it the grace time.
    var isOfWork = false

    init(_ request: Request, isVersion10: Bool) {
        isHead = request.method == .head
        endsConnection = isVersion10 || request.fields.askToClose
        isChunked = !isVersion10
    }
}

extension HTTPFields {
    /// Whether the client sends no further request on the connection (RFC 9112, section 9.6).
    var askToClose: Bool {
        self[values: .connection].contains { value in
            value.split(separator: ",").contains { $0.trimmed.lowercased() == "close" }
        }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
