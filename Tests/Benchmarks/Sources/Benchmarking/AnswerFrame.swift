internal import Glibc

/// The frame of an HTTP/1.1 answer with a `Content-Length`: its head, and the length of its body.
package struct AnswerFrame: Equatable, Sendable {
    /// The status, such as 200.
    package var status: Int
    /// The bytes of the head, with the empty line.
    package var headCount: Int
    /// The bytes of the body by `Content-Length`; nil without one, as for a stream.
    package var bodyCount: Int?
    /// The header fields, by their names in lower case.
    package var fields: [String: String]

    /// The bytes of the whole answer; nil for a stream, which ends with its connection.
    package var count: Int? { bodyCount.map { headCount + $0 } }

    /// Reads the head; nil for an incomplete head, and for bytes that are no head.
    package init?(_ bytes: [UInt8]) {
        guard let headCount = bytes.withUnsafeBytes(Self.headCount) else { return nil }
        let lines = String(decoding: bytes.prefix(headCount - 4), as: UTF8.self).split(
            separator: "\r\n", omittingEmptySubsequences: false)
        let words = lines[0].split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { return nil }
        self.headCount = headCount
        self.status = status
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        self.fields = fields
        bodyCount = status == 304 || status == 204 ? 0 : fields["content-length"].flatMap { Int($0) }
    }

    /// The bytes of the first answer, by its status and `Content-Length`; nil for an incomplete head and for a stream.
    ///
    /// It makes no strings and is no generic function: a client of thousands of connections would measure itself.
    package static func count(of bytes: UnsafeRawBufferPointer) -> Int? {
        guard let headCount = headCount(of: bytes) else { return nil }
        // The status begins behind "HTTP/1.1 ".
        let status = bytes.prefix(12).dropFirst(9)
        if status.elementsEqual("204".utf8) || status.elementsEqual("304".utf8) { return headCount }
        let name: StaticString = "content-length:"
        var line = 0
        while line < headCount, let base = bytes.baseAddress, let found = memchr(base + line, 0x0A, headCount - line) {
            line = UnsafeRawPointer(found) - base + 1
            guard headCount - line > name.utf8CodeUnitCount,
                strncasecmp(base + line, name.utf8Start, name.utf8CodeUnitCount) == 0
            else { continue }
            var count = 0
            for byte in bytes[(line + name.utf8CodeUnitCount)...] where byte != UInt8(ascii: " ") {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { break }
                count = 10 * count + Int(byte - UInt8(ascii: "0"))
            }
            return headCount + count
        }
        return nil
    }

    /// The bytes up to the end of the first empty line; nil without one.
    package static func headCount(of bytes: UnsafeRawBufferPointer) -> Int? {
        var line = 0
        while line < bytes.count, let base = bytes.baseAddress,
            let found = memchr(base + line, 0x0A, bytes.count - line)
        {
            let end = UnsafeRawPointer(found) - base
            if line > 0, end == line || end == line + 1 && bytes[line] == 0x0D { return end + 1 }
            line = end + 1
        }
        return nil
    }
}
