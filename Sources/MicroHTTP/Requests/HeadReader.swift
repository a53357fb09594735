import Glibc
import HTTPMessages
import HTTPTypes

/// Reads the fields of a head, by the letter of RFC 9112, section 5: name, colon, value, CR LF.
struct HeadReader {
    private let cache = FieldCache()

    /// Reads the fields behind a request line.
    ///
    /// - Parameter head: a complete head, whose lines end with CR LF.
    /// - Throws: ``TransportFault/malformed(_:)``.
    func fields(
        of head: UnsafeRawBufferPointer, behind line: RequestLine
    ) throws(TransportFault) -> (list: [HTTPField], known: RequestFields) {
        let bytes = head.assumingMemoryBound(to: UInt8.self)
        var list: [HTTPField] = []
        list.reserveCapacity(8)
        var known = RequestFields()
        var start = line.end
        // The last line is the empty one.
        while start < bytes.count - 2 {
            guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, bytes.count - start) else {
                break
            }
            let end = UnsafeRawPointer(found) - UnsafeRawPointer(base) - 1
            guard
                let field = field(UnsafeBufferPointer(rebasing: bytes[start..<end]), &known)
            else { throw .malformed("a line of the head is not of the form name, colon, value, CR LF") }
            list.append(field)
            start = end + 2
        }
        return (list, known)
    }

    /// Reads a line; nil where it is none of a field.
    ///
    /// A line that is folded begins with white space, which no name has.
    private func field(_ line: UnsafeBufferPointer<UInt8>, _ known: inout RequestFields) -> HTTPField? {
        guard let base = line.baseAddress, let colon = memchr(base, 0x3A, line.count) else { return nil }
        let nameCount = UnsafeRawPointer(colon) - UnsafeRawPointer(base)
        var first = nameCount + 1
        var end = line.count
        while first < end, Self.isSpace(line[first]) { first += 1 }
        while end > first, Self.isSpace(line[end - 1]) { end -= 1 }
        return cache.field(
            name: UnsafeBufferPointer(rebasing: line[..<nameCount]),
            value: UnsafeBufferPointer(rebasing: line[first..<end]), &known)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
