import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// Reads the head of a request from libmicrohttpd.
///
/// Besides what HTTPTypes refuses, it refuses a head whose parts are not in memory as RFC 9112 has them on the wire:
/// name, colon, value, CR LF, next name. libmicrohttpd ends lines at a bare LF, cuts values at a NUL, and appends a
/// folded line to the *name* of the field before, so that `Content: 5` and ` -Length` become `Content-Length: 5`. Each
/// of these leaves a gap between the end of one part and the beginning of the next, which the reader detects by
/// addresses alone.
struct RequestReader {
    private let cache = FieldCache()

    /// Returns the head, in the first call of the access handler.
    ///
    /// - Throws: ``TransportFault/malformed(_:)``.
    func head(
        of connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>
    ) throws(TransportFault) -> Request.Head {
        let text = try target(of: connection, version: version)
        guard let methodValue = Self.method(method) else { throw .malformed("the method is not a token") }
        var scan = FieldScan(cache: cache, next: UInt(bitPattern: version) + UInt(strlen(version)) + 2)
        scan.fields.reserveCapacity(Self.fieldsCount(of: connection.handle))
        withUnsafeMutablePointer(to: &scan) { scan in
            // The returned number of fields is not needed: the scan has the fields.
            _ = MHD_get_connection_values_n(connection.handle, .HEADER_KIND, scanField, scan)
        }
        // The size of the head counts from the method to the end of the empty line.
        let end = UInt(bitPattern: method) + UInt(microhttpd_head_size(connection.handle))
        guard scan.isWellFormed, scan.next + 2 == end else {
            throw .malformed("a line of the head is not of the form name, colon, value, CR LF")
        }
        return Request.Head(
            method: methodValue, target: text, fields: scan.fields, known: scan.known, isLocal: connection.isLocal)
    }

    /// Returns the head of a GET with a header section that is known.
    ///
    /// - Throws: ``TransportFault/malformed(_:)``.
    func head(
        of connection: ClientConnection, version: UnsafePointer<CChar>, _ section: SectionCache.Entry
    ) throws(TransportFault) -> Request.Head {
        Request.Head(
            method: .get, target: try target(of: connection, version: version), fields: section.fields,
            known: section.known, isLocal: connection.isLocal, sectionMemo: section.memo)
    }

    private func target(
        of connection: ClientConnection, version: UnsafePointer<CChar>
    ) throws(TransportFault) -> String {
        guard let text = connection.target.text, UInt(bitPattern: version) == connection.target.end + 1 else {
            throw .malformed("the request target holds a byte that must be percent-encoded")
        }
        return text
    }

    /// How many fields libmicrohttpd has found in the head.
    static func fieldsCount(of connection: OpaquePointer) -> Int {
        Int(MHD_get_connection_values_n(connection, .HEADER_KIND, nil, nil))
    }

    /// Returns the version; libmicrohttpd refuses versions other than 1.0 and 1.1 and above.
    static func version(_ raw: UnsafePointer<CChar>) -> ProtocolVersion {
        strcmp(raw, "HTTP/1.0") == 0 ? .http10 : .http11
    }

    private static func method(_ raw: UnsafePointer<CChar>) -> HTTPRequest.Method? {
        // The two most frequent methods need neither a string nor a validation.
        if strcmp(raw, "GET") == 0 { return .get }
        if strcmp(raw, "POST") == 0 { return .post }
        return HTTPRequest.Method(String(cString: raw))
    }
}

/// The state of the walk over the fields of a head.
private struct FieldScan {
    let cache: FieldCache
    /// The address at which the next field must begin.
    var next: UInt
    var fields: [HTTPField] = []
    var known = RequestFields()
    var isWellFormed = true
}

/// MHD_KeyValueIteratorN: takes one field; NO ends the walk.
private func scanField(
    context: UnsafeMutableRawPointer?, kind: MHD_ValueKind, name: UnsafePointer<CChar>?, nameCount: Int,
    value: UnsafePointer<CChar>?, valueCount: Int
) -> MHD_Result {
    guard let scan = context?.assumingMemoryBound(to: FieldScan.self), let name, let value else { return .NO }
    let nameBytes = UnsafeRawBufferPointer(start: name, count: nameCount).assumingMemoryBound(to: UInt8.self)
    var valueBytes = UnsafeRawBufferPointer(start: value, count: valueCount).assumingMemoryBound(to: UInt8.self)
    guard UInt(bitPattern: name) == scan.pointee.next else {
        scan.pointee.isWellFormed = false
        return .NO
    }
    scan.pointee.next = UInt(bitPattern: value) + UInt(valueCount) + 2
    // libmicrohttpd removes the white space before a value, but not the white space after it.
    while let last = valueBytes.last, last == 0x20 || last == 0x09 {
        valueBytes = UnsafeBufferPointer(rebasing: valueBytes.dropLast())
    }
    // libmicrohttpd does not know a coding with white space behind it, and would wait for the end of the connection.
    let isTrimmed = valueBytes.count < valueCount
    if isTrimmed, nameCount == 17, strncasecmp(name, "Transfer-Encoding", 17) == 0 {
        scan.pointee.isWellFormed = false
        return .NO
    }
    guard let field = scan.pointee.cache.field(name: nameBytes, value: valueBytes, &scan.pointee.known) else {
        scan.pointee.isWellFormed = false
        return .NO
    }
    scan.pointee.fields.append(field)
    return .YES
}
