/// What a client waits for on a connection.
package enum Awaited: Sendable {
    /// A whole answer.
    case answer
    /// The head of an answer whose body is a stream.
    case head
    /// An event with data in a stream; comments, and events without data, are passed over.
    case event

    /// How many bytes there are up to its end; nil while it has not come whole.
    package func end(in bytes: some RandomAccessCollection<UInt8>) -> Int? {
        switch self {
        case .answer: AnswerFrame(bytes).flatMap { $0.count }.flatMap { $0 <= bytes.count ? $0 : nil }
        case .head: AnswerFrame.headCount(of: bytes)
        case .event: Self.eventEnd(in: bytes)
        }
    }

    /// Chunks of a chunked body may begin anywhere, but servers send an event as one.
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
            // A line that is really empty: what separates chunks ends with CR LF.
            if line.isEmpty, hasData { return count }
            line = []
        }
        return nil
    }
}
