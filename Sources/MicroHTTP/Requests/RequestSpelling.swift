/// What libmicrohttpd gets of a request: the same short head for each, without any byte of the client.
///
/// Method, version and the end of the connection stay in ``ClientConnection``, because the loop writes the answers, too.
enum RequestSpelling {
    private static let text: StaticString = "GET / HTTP/1.1\r\nHost:a\r\n"
    /// A read that fills libmicrohttpd's buffer at least needs this much of it.
    static let bytesMax = 64

    /// Writes the head into libmicrohttpd's buffer, and returns how many bytes it takes.
    ///
    /// libmicrohttpd waits for an event of the socket after a read that has not filled its buffer. Where more input is
    /// there already, for which no event will come, a field without meaning fills the buffer.
    static func write(fillingBuffer: Bool, to buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        func write(_ text: StaticString) {
            UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(
                from: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
            count += text.utf8CodeUnitCount
        }
        write(text)
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
