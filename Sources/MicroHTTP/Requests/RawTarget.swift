import Glibc

/// The request line's target as received, and where it ended in the connection's memory.
///
/// The memory stays from request to request, and lasts until ``deallocate()``: the heads of a connection refer to it, which
/// an array would count.
struct RawTarget {
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var count = 0
    /// The address of the byte after the target.
    private(set) var end: UInt = 0

    /// The bytes of the target, valid until the next call of ``take(_:)``; empty where there is none.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory.baseAddress, count: count) }

    /// Copies the target, because libmicrohttpd decodes it in place after the callback (Libmicrohttpd page, 19).
    mutating func take(_ raw: UnsafePointer<CChar>?) {
        (count, end) = (0, 0)
        // "uri will be the 0-terminated URI of the request", and NULL where the request line has none.
        guard let raw else { return }
        count = strlen(raw)
        if count > memory.count {
            memory.deallocate()
            memory = .allocate(byteCount: max(128, count), alignment: 1)
        }
        memory.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: count))
        end = UInt(bitPattern: raw) + UInt(count)
    }

    /// Frees the memory.
    mutating func deallocate() {
        memory.deallocate()
        self = RawTarget()
    }

    /// The target as a string; nil if it is empty or has a byte that RFC 3986 forbids.
    var text: String? {
        // A target is visible ASCII; a client percent-encodes anything else (RFC 3986).
        // One comparison finds both: below 0x21, the subtraction wraps around.
        var highest: UInt8 = 0
        for byte in bytes { highest = max(highest, byte &- 0x21) }
        return count > 0 && highest <= 0x7E - 0x21 ? String(decoding: bytes, as: UTF8.self) : nil
    }
}
