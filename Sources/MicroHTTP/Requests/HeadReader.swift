import Glibc
import HTTPTypes

/// Reads the fields of a head, by the letter of RFC 9112, section 5: name, colon, value, CR LF.
enum HeadReader {
    /// The head is complete, and its lines end with CR LF.
    static func fields(
        of head: UnsafeRawBufferPointer, behind line: RequestLine
    ) throws(TransportFault) -> [HTTPField] {
        let bytes = head.assumingMemoryBound(to: UInt8.self)
        var fields: [HTTPField] = []
        fields.reserveCapacity(8)
        var start = line.end
        while start < bytes.count - 2 {
            guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, bytes.count - start) else {
                break
            }
            let end = UnsafeRawPointer(found) - UnsafeRawPointer(base) - 1
            guard let field = field(UnsafeBufferPointer(rebasing: bytes[start..<end])) else {
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
