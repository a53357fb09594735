/// A text of at most 40 bytes of ASCII, which lies in the value itself: copies count no references.
package struct ShortText: Sendable {
    /// The most bytes.
    package static let countMax = 40

    private var storage: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
    /// How many bytes the text has.
    package let count: Int

    /// Makes a text of what a function writes.
    ///
    /// - Parameter write: writes ASCII to the beginning of a buffer of ``countMax`` bytes, and returns how many bytes.
    package init(_ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        count = withUnsafeMutableBytes(of: &storage) { write($0.assumingMemoryBound(to: UInt8.self)) }
        precondition((0...Self.countMax).contains(count), "a short text has at most 40 bytes")
    }

    /// Calls a function with the bytes.
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withUnsafeBytes(of: storage) {
            body(UnsafeBufferPointer(rebasing: $0.assumingMemoryBound(to: UInt8.self)[..<count]))
        }
    }

    /// The text as a string.
    package var string: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
