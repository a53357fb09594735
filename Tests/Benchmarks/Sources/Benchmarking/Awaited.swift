internal import Glibc

/// The unit of bytes that a client waits for on a connection.
package enum Awaited: Sendable {
    /// A whole answer.
    case answer
    /// The head of an answer whose body is a stream.
    case head
    /// An event with data in a stream; the client ignores comments and events without data.
    case event

    /// The bytes up to the end of the unit; nil while it is incomplete.
    package func end(in bytes: UnsafeRawBufferPointer) -> Int? {
        switch self {
        case .answer: AnswerFrame.count(of: bytes).flatMap { $0 <= bytes.count ? $0 : nil }
        case .head: AnswerFrame.headCount(of: bytes)
        case .event: Self.eventEnd(in: bytes)
        }
    }

    /// A chunk of a chunked body can begin anywhere, but the servers send each event as one chunk.
    private static func eventEnd(in bytes: UnsafeRawBufferPointer) -> Int? {
        var hasData = false
        var line = 0
        while line < bytes.count, let base = bytes.baseAddress,
            let found = memchr(base + line, 0x0A, bytes.count - line)
        {
            let end = UnsafeRawPointer(found) - base
            // An empty line ends with LF only; the lines that separate chunks end with CR LF.
            if end == line, hasData { return end + 1 }
            if end - line >= 5, memcmp(base + line, "data:", 5) == 0 { hasData = true }
            line = end + 1
        }
        return nil
    }
}
