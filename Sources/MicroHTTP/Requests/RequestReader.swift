import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// The request line's target as it came in, and where it ended in the connection's memory.
struct RawTarget {
    /// As it stood there.
    private(set) var bytes: [UInt8] = []
    /// The address of the byte behind it.
    private(set) var end: UInt = 0

    /// Copies the target out: libmicrohttpd decodes it in place right after (MICROHTTPD.md 19).
    mutating func take(_ raw: UnsafePointer<CChar>?) {
        bytes.removeAll(keepingCapacity: true)
        end = 0
        // "uri will be the 0-terminated URI of the request", and NULL where the request line has none.
        guard let raw else { return }
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: raw, count: strlen(raw)))
        end = UInt(bitPattern: raw) + UInt(bytes.count)
    }

    /// Nil if it is empty or holds a byte that no target may.
    var text: String? {
        // Visible ASCII: anything else has to be percent-encoded (RFC 3986).
        let isVisible = !bytes.isEmpty && bytes.allSatisfy { (0x21...0x7E).contains($0) }
        return isVisible ? String(decoding: bytes, as: UTF8.self) : nil
    }
}

/// Reads the head of a request out of libmicrohttpd.
///
/// Besides what HTTPTypes refuses, it refuses a head that does not lie in memory as RFC 9112 lays it out on the wire:
/// name, colon, value, CR LF, next name. libmicrohttpd ends lines at a bare LF, cuts values at a NUL, and glues a folded
/// line to the *name* of the field before, so that `Content: 5` and ` -Length` become `Content-Length: 5`. Each of
/// these leaves a gap between the end of one part and the beginning of the next, and needs no other check.
struct RequestReader {
    private let cache = FieldCache()

    /// The head as a request without body, in the first call of the access handler.
    func head(
        of connection: OpaquePointer, target: RawTarget, method: UnsafePointer<CChar>,
        version: UnsafePointer<CChar>, client: String
    ) throws(TransportFault) -> Request {
        guard let text = target.text, UInt(bitPattern: version) == target.end + 1 else {
            throw .malformed("the request target holds a byte that must be percent-encoded")
        }
        guard let methodValue = Self.method(method) else { throw .malformed("the method is not a token") }
        var scan = FieldScan(cache: cache, next: UInt(bitPattern: version) + UInt(strlen(version)) + 2)
        withUnsafeMutablePointer(to: &scan) { scan in
            // It returns the number of fields, which the scan knows better.
            _ = MHD_get_connection_values_n(connection, .HEADER_KIND, scanField, scan)
        }
        // The head's size is counted from the method to the end of the empty line.
        let end = UInt(bitPattern: method) + UInt(microhttpd_head_size(connection))
        guard scan.isWellFormed, scan.next + 2 == end else {
            throw .malformed("a line of the head is not of the form name, colon, value, CR LF")
        }
        return Request(method: methodValue, target: text, fields: scan.fields, client: client)
    }

    /// How many fields libmicrohttpd sees in the head.
    static func fieldsCount(of connection: OpaquePointer) -> Int {
        Int(MHD_get_connection_values_n(connection, .HEADER_KIND, nil, nil))
    }

    /// The version, as the screening tells them apart; libmicrohttpd refuses what is neither 1.0 nor 1.1 and above.
    static func version(_ raw: UnsafePointer<CChar>) -> ProtocolVersion {
        strcmp(raw, "HTTP/1.0") == 0 ? .http10 : .http11
    }

    private static func method(_ raw: UnsafePointer<CChar>) -> HTTPRequest.Method? {
        // The two that make up nearly all traffic need neither a string nor a validation.
        if strcmp(raw, "GET") == 0 { return .get }
        if strcmp(raw, "POST") == 0 { return .post }
        return HTTPRequest.Method(String(cString: raw))
    }
}

/// What the walk over the fields has found so far.
private struct FieldScan {
    let cache: FieldCache
    /// The address at which the next field must begin.
    var next: UInt
    var fields = HTTPFields()
    var isWellFormed = true
}

/// Takes one field; returning NO ends the walk.
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
    // libmicrohttpd strips the white space before a value, not the one behind it.
    while let last = valueBytes.last, last == 0x20 || last == 0x09 {
        valueBytes = UnsafeBufferPointer(rebasing: valueBytes.dropLast())
    }
    guard let field = scan.pointee.cache.field(name: nameBytes, value: valueBytes) else {
        scan.pointee.isWellFormed = false
        return .NO
    }
    scan.pointee.fields.append(field)
    return .YES
}
