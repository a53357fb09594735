import HTTPMessages
import HTTPTypes

/// The properties of a request that determine the form of its answer on a parked connection.
struct ResponseOptions {
    var isHead: Bool
    var endsConnection: Bool
    var isChunked: Bool
    /// Whether a handler works on the request, so that a stop leaves it the grace time.
    var isOfWork = false

    init(_ request: Request, isVersion10: Bool) {
        isHead = request.method == .head
        endsConnection = isVersion10 || request.head.endsConnection(isVersion10: false)
        isChunked = !isVersion10
    }
}

extension Request.Head {
    /// Whether no further request follows on the connection (RFC 9112, section 9.3): the client asks for that, or has sent
    /// the request by HTTP/1.0 and does not ask to keep the connection.
    func endsConnection(isVersion10: Bool) -> Bool {
        let options = self[values: RequestField.connection].flatMap { value in
            value.split(separator: ",").map { $0.trimmingSpaces().lowercased() }
        }
        return options.contains("close") || isVersion10 && !options.contains("keep-alive")
    }
}
