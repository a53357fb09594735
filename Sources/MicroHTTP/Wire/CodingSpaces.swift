import Glibc

/// The white space behind the value of `Transfer-Encoding`, which RFC 9112 allows and libmicrohttpd takes for a part of the
/// value.
///
/// It is moved in front of the value, where libmicrohttpd skips it: the head keeps its length and its meaning, and all other
/// bytes keep their places. A line that does not come in one piece, behind the beginning of its head, stays as it is, and the
/// request is refused.
enum CodingSpaces {
    private static let name = StaticString("transfer-encoding:")

    /// Moves the white space in the lines of a head; what comes behind the head is left alone.
    ///
    /// - Parameter bytes: received bytes that begin with a head.
    static func move(in bytes: UnsafeMutableRawBufferPointer) {
        // A GET has no body, and nearly all heads are of one.
        guard let base = bytes.baseAddress, bytes.first != UInt8(ascii: "G") else { return }
        var line = 0
        while let found = memchr(base + line, 0x0A, bytes.count - line) {
            let end = UnsafeRawPointer(found) - UnsafeRawPointer(base)
            let isWhole = end > line && bytes[end - 1] == 0x0D
            // A line without content ends the head.
            if end == line || isWhole && end == line + 1 { return }
            if line > 0, isWhole, bytes[line] | 0x20 == UInt8(ascii: "t") {
                move(inLine: UnsafeMutableRawBufferPointer(rebasing: bytes[line..<end - 1]))
            }
            line = end + 1
        }
    }

    private static func move(inLine line: UnsafeMutableRawBufferPointer) {
        let start = name.utf8CodeUnitCount
        guard line.count > start, let base = line.baseAddress,
            strncasecmp(base.assumingMemoryBound(to: CChar.self), name.utf8Start, start) == 0,
            let first = line[start...].firstIndex(where: { !isSpace($0) }),
            let last = line.lastIndex(where: { !isSpace($0) }), last < line.count - 1,
            // libmicrohttpd may end a line at a control character.
            line.allSatisfy({ $0 >= 0x20 || $0 == 0x09 })
        else { return }
        let value = Array(line[first...last])
        let spaces = Array(line[(last + 1)...])
        for (index, byte) in (spaces + value).enumerated() { line[first + index] = byte }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
