import HTTPTypes

/// The one spelling in which libmicrohttpd gets a request: no target, no field and no body of the client.
///
/// It says what libmicrohttpd needs for the answer: whether a body may follow the head, the version, and whether the
/// connection goes on. Everything else stays in ``ClientConnection``.
enum RequestSpelling {
    /// A read that fills libmicrohttpd's buffer at least needs this much of it.
    static let bytesMax = 128

    /// Writes the head of a request into libmicrohttpd's buffer, and returns how many bytes it takes.
    ///
    /// libmicrohttpd waits for an event of the socket after a read that has not filled its buffer. Where more input is
    /// there already, for which no event will come, a field without meaning fills the buffer.
    static func write(
        _ method: HTTPRequest.Method, _ version: ProtocolVersion, isLast: Bool, fillingBuffer: Bool,
        to buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        var count = 0
        func write(_ text: StaticString) {
            UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(
                from: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
            count += text.utf8CodeUnitCount
        }
        switch method {
        case .get: write("GET")
        case .head: write("HEAD")
        // The others have answers with bodies.
        default: write("POST")
        }
        switch (version, isLast) {
        case (.http11, false): write(" / HTTP/1.1\r\nHost:a\r\n")
        case (.http11, true): write(" / HTTP/1.1\r\nHost:a\r\nConnection:close\r\n")
        case (.http10, false): write(" / HTTP/1.0\r\nConnection:keep-alive\r\n")
        case (.http10, true): write(" / HTTP/1.0\r\n")
        }
        if fillingBuffer {
            write("X:")
            let fillCount = buffer.count - count - 4
            UnsafeMutableRawBufferPointer(rebasing: buffer[count..<count + fillCount])
                .initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "x"))
            count += fillCount
            write("\r\n")
        }
        write("\r\n")
        return count
    }
}
