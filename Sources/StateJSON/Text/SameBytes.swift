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
}
