/// The unit of bytes that a client waits for on a connection.
package enum Awaited: Sendable {
    /// A whole answer.
    case answer
    /// The head of an answer whose body is a stream.
    case head
    /// An event with data in a stream; the client ignores comments and events without data.
    case event

    /// The bytes up to the end of the unit; nil while it is incomplete.
    package func end(in bytes: some RandomAccessCollection<UInt8>) -> Int? {
        switch self {
        case .answer: AnswerFrame.count(of: bytes).flatMap { $0 <= bytes.count ? $0 : nil }
        case .head: AnswerFrame.headCount(of: bytes)
        case .event: Self.eventEnd(in: bytes)
        }
    }

    /// A chunk of a chunked body can begin anywhere, but the servers send each event as one chunk.
    private static func eventEnd(in bytes: some RandomAccessCollection<UInt8>) -> Int? {
        var hasData = false
        var line: [UInt8] = []
        var count = 0
        for byte in bytes {
            count += 1
            guard byte == UInt8(ascii: "\n") else {
                if line.count < 5 { line.append(byte) }
                continue
            }
            if line.elementsEqual("data:".utf8) { hasData = true }
            // An empty line ends with LF only; the lines that separate chunks end with CR LF.
            if line.isEmpty, hasData { return count }
            line = []
        }
        return nil
    }
}
