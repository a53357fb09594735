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
    package init?(_ bytes: some RandomAccessCollection<UInt8>) {
        guard let headCount = Self.headCount(of: bytes) else { return nil }
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
    /// It makes no strings: a client of thousands of connections that reads every field would measure itself.
    package static func count(of bytes: some RandomAccessCollection<UInt8>) -> Int? {
        guard let headCount = headCount(of: bytes) else { return nil }
        var lines = bytes.prefix(headCount).split(separator: UInt8(ascii: "\n"))[...]
        let status = lines.popFirst()?.split(separator: UInt8(ascii: " ")).dropFirst().first
        if let status, status.elementsEqual("204".utf8) || status.elementsEqual("304".utf8) { return headCount }
        let name = "content-length:".utf8
        for line in lines where line.count > name.count {
            // A letter and its capital differ in this bit, and the hyphen and the colon have it.
            guard zip(line, name).allSatisfy({ $0 | 0x20 == $1 }) else { continue }
            let digits = line.dropFirst(name.count).filter { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            return Int(String(decoding: digits, as: UTF8.self)).map { headCount + $0 }
        }
        return nil
    }

    /// The bytes up to the end of the first empty line; nil without one.
    package static func headCount(of bytes: some RandomAccessCollection<UInt8>) -> Int? {
        var lineIsEmpty = false
        var count = 0
        for byte in bytes {
            count += 1
            switch byte {
            case UInt8(ascii: "\n"):
                if lineIsEmpty { return count }
                lineIsEmpty = true
            case UInt8(ascii: "\r"): break
            default: lineIsEmpty = false
            }
        }
        return nil
    }
}
