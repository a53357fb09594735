/// A text of at most 39 bytes of ASCII, which lies in the value itself: copies count no references.
package struct ShortText: Sendable {
    /// The most bytes.
    package static let countMax = 39

    /// The bytes, with a zero behind them.
    private var storage: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
    /// How many bytes the text has.
    package let count: Int

    /// Makes a text of what a function writes.
    ///
    /// - Parameter write: writes ASCII to the beginning of a buffer of ``countMax`` bytes, and returns how many bytes.
    package init(_ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        count = withUnsafeMutableBytes(of: &storage) { write($0.assumingMemoryBound(to: UInt8.self)) }
        precondition((0...Self.countMax).contains(count), "a short text has at most 39 bytes")
    }

    /// Calls a function with the bytes.
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withUnsafeBytes(of: storage) {
            body(UnsafeBufferPointer(rebasing: $0.assumingMemoryBound(to: UInt8.self)[..<count]))
        }
    }

    /// Copies the bytes from one of them on to memory that has room for 39; returns how many.
    package func copy(from first: Int = 0, to target: UnsafeMutablePointer<UInt8>) -> Int {
        withUnsafeBytes(of: storage) { bytes in
            UnsafeMutableRawPointer(target).copyMemory(
                from: bytes.baseAddress.unsafelyUnwrapped + first, byteCount: count - first)
        }
        return count - first
    }

    /// Calls a function with the bytes as a text of C.
    package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        withUnsafeBytes(of: storage) { bytes in
            guard let start = bytes.assumingMemoryBound(to: CChar.self).baseAddress else {
                preconditionFailure("a value has an address")
            }
            return body(start)
        }
    }

    /// The text as a string.
    package var string: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
