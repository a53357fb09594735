internal import CXXHash

/// The XXH3 128-bit hash of some bytes: equal bytes have equal hashes, on every machine and in every process.
///
/// It is not cryptographic: an attacker can make two texts with the same hash.
package struct ContentHash: Hashable, Sendable {
    /// The most significant 64 bits.
    package let high: UInt64
    /// The least significant 64 bits.
    package let low: UInt64

    /// Hashes bytes.
    ///
    /// O(n), about 10 GB a second.
    package init(_ bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { ContentHash($0) }
    }

    /// Hashes bytes; O(n).
    package init(_ bytes: UnsafeRawBufferPointer) {
        let hash = storekeeper_hash(bytes.baseAddress, bytes.count)
        high = hash.high64
        low = hash.low64
    }

    /// Half of the bits tell hashes apart as well as all.
    package func hash(into hasher: inout Hasher) { hasher.combine(low) }

    /// Makes a hash of its halves.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The hash as 26 characters of lower-case base 32.
    package var text: String {
        Base32.text(high: high, low: low)
    }
}

/// Lower-case base 32 (RFC 4648 alphabet) of 128-bit numbers, most significant bits first.
package enum Base32 {
    /// The 26 characters for 128 bits.
    package static func text(high: UInt64, low: UInt64) -> String {
        let alphabet: StaticString = "abcdefghijklmnopqrstuvwxyz234567"
        return String(unsafeUninitializedCapacity: 26) { buffer in
            var (high, low) = (high, low)
            for index in stride(from: 25, through: 0, by: -1) {
                buffer[index] = alphabet.utf8Start[Int(low & 31)]
                low = low >> 5 | high << 59
                high >>= 5
            }
            return 26
        }
    }
}
