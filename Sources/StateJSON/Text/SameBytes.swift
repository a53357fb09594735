#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

extension UnsafeBufferPointer<UInt8> {
    /// Whether both buffers have the same bytes: the C library compares many at once, `elementsEqual` one after the other.
    package func hasBytes(of other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        guard let start = baseAddress, let otherStart = other.baseAddress else { return true }
        return memcmp(start, otherStart, count) == 0
    }

    /// Whether one of the bytes is this one; as the comparison, it looks at many at once.
    package func has(_ byte: UInt8) -> Bool {
        guard let start = baseAddress else { return false }
        return memchr(start, CInt(byte), count) != nil
    }
}

extension String {
    /// Calls a function with the UTF-8 bytes, which a string of Swift's own nearly always lends without a copy.
    @inlinable @inline(__always)
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
        return try Array(utf8).withUnsafeBufferPointer(body)
    }
}
