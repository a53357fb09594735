import Glibc

/// The end of a request's head in received bytes, found line by line.
///
/// Every line ends with CR LF (RFC 9112, section 2.2). A bare LF or CR is refused as soon as it comes: another reader of the
/// same bytes may take it for the end of a line, or not.
enum HeadScan: Equatable {
    /// The head is complete and takes this many bytes, with the empty line behind the fields.
    case complete(count: Int)
    /// The head goes on; the line that has not ended begins here.
    case incomplete(lineStart: Int)

    /// How many bytes of empty lines stand in front of a head, which RFC 9112, section 2.2, has a server ignore.
    static func emptyLinesCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        var count = 0
        while count + 1 < bytes.count, bytes[count] == 0x0D, bytes[count + 1] == 0x0A { count += 2 }
        return count
    }

    /// Looks for the end of a head.
    ///
    /// - Parameter start: where a line begins, before which no empty line ends.
    /// - Throws: ``TransportFault/malformed(_:)``.
    static func scan(_ bytes: UnsafeRawBufferPointer, from start: Int = 0) throws(TransportFault) -> HeadScan {
        guard let base = bytes.baseAddress else { return .incomplete(lineStart: 0) }
        var line = start
        while let found = memchr(base + line, 0x0A, bytes.count - line) {
            let end = UnsafeRawPointer(found) - base
            guard end > line, bytes[end - 1] == 0x0D else { throw .malformed("a line of the head ends with LF alone") }
            if end == line + 1 { return .complete(count: end + 1) }
            line = end + 1
        }
        if let found = memchr(base + line, 0x0D, bytes.count - line), UnsafeRawPointer(found) - base < bytes.count - 1 {
            throw .malformed("a line of the head ends with CR alone")
        }
        return .incomplete(lineStart: line)
    }

    /// What is wrong with a head that is not complete; nil where it can still become one.
    ///
    /// - Parameter lineStart: where its last line begins.
    static func fault(
        inBeginning bytes: UnsafeRawBufferPointer, lineStart: Int, _ configuration: ServerConfiguration
    ) -> TransportFault? {
        // A lone CR may begin an empty line.
        guard let first = bytes.first, bytes.count > 1 || first != 0x0D else { return nil }
        guard ChunkFraming.isToken(first) else {
            // A TLS record of a handshake begins with 22 and the major version 3 (RFC 8446, section 5.1).
            guard first == 22 else { return .malformed("the first byte begins no method") }
            return .malformed("the bytes are a greeting of TLS, and this server speaks HTTP without TLS")
        }
        if lineStart == 0 {
            let target = bytes.firstIndex(of: 0x20).map { bytes.count - $0 - 1 } ?? 0
            if target > configuration.targetBytesMax + " HTTP/1.1\r".utf8.count { return configuration.targetFault }
        } else {
            do throws(TransportFault) {
                _ = try RequestLine(bytes)
            } catch {
                return error
            }
        }
        return bytes.count > configuration.headBytesMax ? configuration.headFault : nil
    }
}
