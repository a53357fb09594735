import CMicroHTTPD
import HTTPMessages
import HTTPTypes

/// A response in libmicrohttpd's form, which any number of connections may share (Libmicrohttpd page, 23).
///
/// Only the loop thread makes, uses and releases it.
final class PreparedResponse {
    private let handle: OpaquePointer
    private let status: UInt32
    /// Whether the connection ends after it.
    let endsConnection: Bool

    /// libmicrohttpd copies bodies up to this size and reads longer ones from the array.
    private static let copiedBytesMax = 16 << 10

    /// Makes a response, or returns nil if libmicrohttpd has no memory for it or refuses a field.
    init?(_ response: Response, closing: Bool, counting memory: MemoryBudget) {
        guard let handle = Self.makeHandle(response.body, counting: memory) else { return nil }
        self.handle = handle
        status = UInt32(response.status.code)
        endsConnection = closing || response.connection == .close
        guard addFields(of: response, closing: closing) else { return nil }
    }

    /// Makes a response without fields of libmicrohttpd's object, which it destroys.
    init(owning handle: OpaquePointer, status: HTTPResponse.Status) {
        self.handle = handle
        self.status = UInt32(status.code)
        endsConnection = false
    }

    // The call "decreases the reference counter"; a connection that still sends the response has its own reference.
    deinit { MHD_destroy_response(handle) }

    /// Queues the response on a connection, inside the access handler; returns false if libmicrohttpd refuses.
    func queue(on connection: OpaquePointer) -> Bool {
        // libmicrohttpd drops the bodies of 204, 304 and answers to HEAD (Libmicrohttpd page, 25).
        MHD_queue_response(connection, status, handle) == .YES
    }

    private static func makeHandle(_ body: [UInt8], counting memory: MemoryBudget) -> OpaquePointer? {
        guard body.count > copiedBytesMax else {
            return body.withUnsafeBytes { bytes in
                // With MUST_COPY, libmicrohttpd only reads the buffer, though the C parameter is not const.
                MHD_create_response_from_buffer(
                    bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
            }
        }
        // `releaseBody` releases it, or the code below.
        let box = Unmanaged.passRetained(RetainedBody(body, memory.hold(body)))
        let handle = box.takeUnretainedValue().withBaseAddress { base in
            MHD_create_response_from_buffer_with_free_callback_cls(body.count, base, releaseBody, box.toOpaque())
        }
        if handle == nil { box.release() }
        return handle
    }

    var statusCode: Int { Int(status) }

    /// Whether its status is this one.
    func has(_ status: HTTPResponse.Status) -> Bool { status.code == statusCode }

    /// Adds the fields of a response; returns false where libmicrohttpd has no memory or refuses a field.
    func addFields(of response: Response, closing: Bool = false) -> Bool {
        for field in response.fields {
            // libmicrohttpd refuses empty values; an empty field and a missing one mean the same.
            guard !field.value.isEmpty else { continue }
            guard MHD_add_response_header(handle, field.name.rawName, field.value) == .YES else { return false }
        }
        guard closing || response.connection == .close else { return true }
        // A shared response closes every connection that gets it (Libmicrohttpd page, 24), as its field states.
        return MHD_add_response_header(handle, "Connection", "close") == .YES
    }
}

/// The owner of a long body while libmicrohttpd reads it.
private final class RetainedBody {
    private let bytes: [UInt8]
    private let holding: MemoryBudget.Holding?

    init(_ bytes: [UInt8], _ holding: MemoryBudget.Holding?) {
        self.bytes = bytes
        self.holding = holding
    }

    /// Calls the closure with the address of the body, which stays valid until `releaseBody`.
    ///
    /// On Linux an array is one native heap object, which never moves; no code writes to this one, and this object owns
    /// it.
    func withBaseAddress<Result>(_ body: (UnsafeMutableRawPointer?) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeMutableRawPointer(mutating: $0.baseAddress)) }
    }
}

/// MHD_ContentReaderFreeCallback: libmicrohttpd calls it when no connection needs the body; it balances the retain in
/// `makeHandle`.
private func releaseBody(_ box: UnsafeMutableRawPointer?) {
    guard let box else { return }
    Unmanaged<RetainedBody>.fromOpaque(box).release()
}
