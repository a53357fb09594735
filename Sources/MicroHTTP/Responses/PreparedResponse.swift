import CMicroHTTPD
import HTTPMessages
import HTTPTypes

/// A response in libmicrohttpd's form, which any number of connections may share (MICROHTTPD.md 23).
///
/// Made and dropped on the loop thread.
final class PreparedResponse {
    private let handle: OpaquePointer
    private let status: UInt32

    /// Bodies up to this size are copied; for longer ones libmicrohttpd borrows the array.
    private static let copiedBytesMax = 16 << 10

    /// Makes one, or returns nil if libmicrohttpd has no memory for it or refuses a field.
    init?(_ response: Response, closing: Bool) {
        guard let handle = Self.makeHandle(response.body) else { return nil }
        guard Self.addFields(of: response, closing: closing, to: handle) else {
            MHD_destroy_response(handle)
            return nil
        }
        self.handle = handle
        status = UInt32(response.status.code)
    }

    // "Decreases the reference counter"; connections still sending it hold references of their own.
    deinit { MHD_destroy_response(handle) }

    /// Gives it to a connection, inside the access handler; false if libmicrohttpd refuses.
    func queue(on connection: OpaquePointer) -> Bool {
        // The bodies of 204, 304 and answers to HEAD are dropped by libmicrohttpd (MICROHTTPD.md 25).
        MHD_queue_response(connection, status, handle) == .YES
    }

    private static func makeHandle(_ body: [UInt8]) -> OpaquePointer? {
        guard body.count > copiedBytesMax else {
            return body.withUnsafeBytes { bytes in
                // MUST_COPY only reads the buffer; the parameter is not const in C.
                MHD_create_response_from_buffer(
                    bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
            }
        }
        let box = Unmanaged.passRetained(RetainedBody(body))  // Released in `releaseBody`, or below if it never ran.
        let handle = box.takeUnretainedValue().withBaseAddress { base in
            MHD_create_response_from_buffer_with_free_callback_cls(body.count, base, releaseBody, box.toOpaque())
        }
        if handle == nil { box.release() }
        return handle
    }

    private static func addFields(of response: Response, closing: Bool, to handle: OpaquePointer) -> Bool {
        for field in response.fields {
            // libmicrohttpd refuses empty values, and leaving out an empty field says the same.
            guard !field.value.isEmpty else { continue }
            guard MHD_add_response_header(handle, field.name.rawName, field.value) == .YES else { return false }
        }
        guard closing || response.connection == .close else { return true }
        // On a shared response this closes every connection that gets it (MICROHTTPD.md 24), which is what it says.
        return MHD_add_response_header(handle, "Connection", "close") == .YES
    }
}

/// Keeps a long body alive for as long as libmicrohttpd reads it.
private final class RetainedBody {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The address outlives the call: an array on Linux is one native heap object that nobody moves, it is never
    /// written, and this box holds it until `releaseBody`.
    func withBaseAddress<Result>(_ body: (UnsafeMutableRawPointer?) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeMutableRawPointer(mutating: $0.baseAddress)) }
    }
}

/// Called by libmicrohttpd when the last connection has sent the body: the release for `makeHandle`'s retain.
private func releaseBody(_ box: UnsafeMutableRawPointer?) {
    guard let box else { return }
    Unmanaged<RetainedBody>.fromOpaque(box).release()
}
