import Glibc
import HTTPMessages
import HTTPTypes

enum ProtocolVersion {
    case http10
    /// HTTP/1.1, and each later version with the same major number (RFC 9110, section 2.5).
    case http11
}

/// One space between each part (RFC 9112, section 3).
struct RequestLine {
    let method: HTTPRequest.Method
    /// Points into the memory of the head.
    let target: UnsafeRawBufferPointer
    let version: ProtocolVersion
    /// Where the version begins, behind which nothing depends on the target.
    let versionStart: Int
    let end: Int

    /// Takes lines that end with CR LF.
    init(_ head: UnsafeRawBufferPointer) throws(Problem) {
        guard let base = head.baseAddress, let lineFeed = memchr(base, 0x0A, head.count).map({ UnsafeRawPointer($0) }),
            case let line = UnsafeRawBufferPointer(start: base, count: lineFeed - base - 1),
            let first = memchr(base, 0x20, line.count).map({ UnsafeRawPointer($0) - base }),
            let last = line.lastIndex(of: 0x20), first < last
        else { throw .malformed("the request line is not of the form method, target, version") }
        version = try Self.version(line[(last + 1)...])
        guard let method = Self.method(UnsafeRawBufferPointer(rebasing: line[..<first])) else {
            throw .malformed("the method is not a token")
        }
        target = UnsafeRawBufferPointer(rebasing: line[(first + 1)..<last])
        // One comparison finds what lies below and above visible ASCII: below 0x21, the subtraction wraps around.
        var highest: UInt8 = 0
        for byte in target { highest = max(highest, byte &- 0x21) }
        guard !target.isEmpty, highest <= 0x7E - 0x21 else {
            throw .malformed("the request target holds a byte that must be percent-encoded")
        }
        self.method = method
        versionStart = last + 1
        end = lineFeed - base + 1
    }

    private static func method(_ bytes: UnsafeRawBufferPointer) -> HTTPRequest.Method? {
        // The two most frequent methods need neither a string nor a validation.
        if bytes.elementsEqual("GET".utf8) { return .get }
        if bytes.elementsEqual("POST".utf8) { return .post }
        return HTTPRequest.Method(String(decoding: bytes, as: UTF8.self))
    }

    private static func version(_ bytes: Slice<UnsafeRawBufferPointer>) throws(Problem) -> ProtocolVersion {
        func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
        let start = bytes.startIndex
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), isDigit(bytes[start + 5]), bytes[start + 6] == 0x2E,
            isDigit(bytes[start + 7])
        else { throw .malformed("the request line does not end with a version of HTTP") }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            throw Problem(
                HTTPResponse.Status(code: 505, reasonPhrase: "HTTP Version Not Supported"), "http-version",
                "this server speaks HTTP/1.1 and HTTP/1.0")
        }
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }

    /// Reads the fields behind the line by the letter of RFC 9112, section 5: name, colon, value, CR LF.
    ///
    /// The head is complete, and its lines end with CR LF.
    func fields(of head: UnsafeRawBufferPointer) throws(Problem) -> [HTTPField] {
        let bytes = head.assumingMemoryBound(to: UInt8.self)
        var fields: [HTTPField] = []
        fields.reserveCapacity(8)
        var start = end
        while start < bytes.count - 2 {
            guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, bytes.count - start) else {
                break
            }
            let end = UnsafeRawPointer(found) - UnsafeRawPointer(base) - 1
            guard let field = Self.field(UnsafeBufferPointer(rebasing: bytes[start..<end])) else {
                throw .malformed("a line of the head is not of the form name, colon, value, CR LF")
            }
            fields.append(field)
            start = end + 2
        }
        return fields
    }

    /// Nil also for a byte that RFC 9110 forbids; a line that is folded begins with white space, which no name has.
    private static func field(_ line: UnsafeBufferPointer<UInt8>) -> HTTPField? {
        guard let base = line.baseAddress, let colon = memchr(base, 0x3A, line.count) else { return nil }
        let nameCount = UnsafeRawPointer(colon) - UnsafeRawPointer(base)
        var first = nameCount + 1
        var end = line.count
        while first < end, isSpace(line[first]) { first += 1 }
        while end > first, isSpace(line[end - 1]) { end -= 1 }
        let value = UnsafeBufferPointer(rebasing: line[first..<end])
        // HTTPField's initializer would turn forbidden bytes into spaces; the server refuses them.
        guard let name = HTTPField.Name(String(decoding: line[..<nameCount], as: UTF8.self)),
            HTTPField.isValidValue(value)
        else { return nil }
        return HTTPField(name: name, value: value)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
