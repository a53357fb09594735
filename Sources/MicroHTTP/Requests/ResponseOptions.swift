import HTTPMessages
import HTTPTypes

/// The properties of a request that determine the form of its answer on a parked connection.
struct ResponseOptions {
    let isHead: Bool
    var endsConnection: Bool
    let isChunked: Bool
    /// Whether a handler works on the request, so that a stop leaves it the grace time.
    let isOfWork: Bool

    init(_ request: Request, on connection: ClientConnection, isOfWork: Bool = false) {
        self.isOfWork = isOfWork
        let isVersion10 = connection.head?.version == .http10
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
