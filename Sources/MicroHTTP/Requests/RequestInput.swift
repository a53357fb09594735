/// What has been received on a connection, up to the request that libmicrohttpd gets next.
///
/// It is a value in its ``ClientConnection``; ``RequestIntake`` moves it on.
struct RequestInput {
    /// What the next received byte belongs to.
    enum Position {
        /// The head of a request, or the empty lines in front of it.
        case head
        /// A body with so many more bytes.
        case declared(bytesLeft: Int)
        case chunked(ChunkFraming)
        /// A body that the server has refused, and of which it discards up to this many bytes.
        case discarding(bytesLeft: Int)
        /// The next request: libmicrohttpd has the current one.
        case complete
        /// Nothing: no request follows on the connection.
        case ended
    }

    var position = Position.head
    /// The beginning of a head, or what has come behind a request.
    var held: [UInt8] = []
    /// Where the last line of `held` begins that has been looked at; nil where none of it has been.
    var scannedLine: Int?
    /// How many bytes of the current body have come.
    var bodyBytes = 0
    /// Whether libmicrohttpd has asked for bytes while it had a request, so that the kernel has to report them again.
    var wasMissed = false

    /// Whether bytes wait behind the last request, which the kernel does not report again.
    var hasUnread: Bool { scannedLine == nil && !held.isEmpty }

    /// Whether a request has begun to arrive and is not complete.
    var isReceiving: Bool {
        switch position {
        case .head: !held.isEmpty
        case .declared, .chunked, .discarding: true
        case .complete, .ended: false
        }
    }

    /// Whether a body is arriving.
    var isReceivingBody: Bool {
        if case .head = position { return false }
        return isReceiving
    }

    /// Goes on to the next request behind the current one, which is complete.
    mutating func endRequest(isLast: Bool) {
        position = isLast ? .ended : .head
        bodyBytes = 0
        if isLast { held = [] }
    }
}
