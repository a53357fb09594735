/// How many commits a state is away from the beginning of its history.
public typealias Version = UInt64

/// The name of one history: 80 random bits in lower-case base 32.
///
/// An epoch lasts as long as its journal. A history whose versions start again from 0 has another epoch.
package struct Epoch: Hashable, Sendable, CustomStringConvertible {
    /// The bytes of ``text``, as they lie in memory: every answer copies a cursor, and a copy of a string counts references.
    fileprivate let (first, second): (UInt64, UInt64)
    package static let count = 16
    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Sixteen characters from `a` to `z` and `2` to `7`.
    package var text: String { withUnsafeBytes(of: (first, second)) { String(decoding: $0, as: UTF8.self) } }

    package static func random() -> Epoch { Epoch(checked: (0..<count).map { _ in alphabet[Int.random(in: 0..<32)] }) }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.count, text.utf8.allSatisfy(Epoch.alphabet.contains) else { return nil }
        self.init(checked: Array(text.utf8))
    }

    private init(checked bytes: [UInt8]) {
        (first, second) = bytes.withUnsafeBytes { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
    }

    package var description: String { text }
}

/// An instant of a history; opaque to clients.
package struct Cursor: Hashable, Sendable, CustomStringConvertible {
    package var epoch: Epoch
    package var version: Version

    package init(_ epoch: Epoch, _ version: Version) { (self.epoch, self.version) = (epoch, version) }

    /// Reads `<epoch>.<version>`; the result is nil when the text is not a cursor, or has leading zeros.
    package init?(text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = Epoch(parts[0]), let version = Version(parts[1]),
            String(version) == parts[1]
        else { return nil }
        self.init(epoch, version)
    }

    /// `<epoch>.<version>`.
    package var description: String {
        // Each answer holds a cursor: writing it in place costs a quarter of what an interpolation costs.
        String(unsafeUninitializedCapacity: 40) { write(to: $0) }
    }

    /// Writes the bytes of ``description``, at most 37, to the beginning of a buffer; returns how many.
    package func write(to bytes: UnsafeMutableBufferPointer<UInt8>) -> Int {
        let words = UnsafeMutableRawBufferPointer(bytes)
        words.storeBytes(of: epoch.first, as: UInt64.self)
        words.storeBytes(of: epoch.second, toByteOffset: 8, as: UInt64.self)
        bytes[Epoch.count] = UInt8(ascii: ".")
        let count = Epoch.count + 1
        var (digits, rest) = (1, version)
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        rest = version
        for index in stride(from: count + digits - 1, through: count, by: -1) {
            bytes[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        return count + digits
    }
}
