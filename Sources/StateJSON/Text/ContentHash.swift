internal import CXXHash

/// XXH3 with 128 bits: the same on every machine and in every process, but not cryptographic.
package struct ContentHash: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    /// O(n), about 10 GB a second.
    package init(_ bytes: [UInt8]) { self = bytes.withUnsafeBytes { ContentHash($0) } }

    package init(_ bytes: UnsafeRawBufferPointer) {
        let hash = storekeeper_hash(bytes.baseAddress, bytes.count)
        high = hash.high64
        low = hash.low64
    }

    /// Half of the bits tell hashes apart as well as all.
    package func hash(into hasher: inout Hasher) { hasher.combine(low) }

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    private static let charactersCount = 26

    /// 26 characters of base 32, in the alphabet of RFC 4648, lower-case, most significant bits first.
    package var text: String {
        String(unsafeUninitializedCapacity: Self.charactersCount) { write(to: UnsafeMutableRawBufferPointer($0)) }
    }

    /// Returns the number of characters.
    package func write(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        // The first two characters stand for the highest 8 bits, each eight behind them for 40 bits.
        buffer.storeBytes(of: UInt16(truncatingIfNeeded: Self.characters(high >> 56)).bigEndian, as: UInt16.self)
        buffer.storeBytes(of: Self.characters(high >> 16).bigEndian, toByteOffset: 2, as: UInt64.self)
        buffer.storeBytes(of: Self.characters(high << 24 | low >> 40).bigEndian, toByteOffset: 10, as: UInt64.self)
        buffer.storeBytes(of: Self.characters(low).bigEndian, toByteOffset: 18, as: UInt64.self)
        return Self.charactersCount
    }

    /// The eight characters for the lowest 40 bits of a number, the first of them in the highest byte.
    private static func characters(_ bits: UInt64) -> UInt64 {
        // The bits are moved apart until each byte has five of them.
        var digits = bits & 0xF_FFFF | (bits >> 20 & 0xF_FFFF) << 32
        digits = digits & 0x3FF_0000_03FF | (digits & 0xF_FC00_000F_FC00) << 6
        digits = digits & 0x1F_001F_001F_001F | (digits & 0x3E0_03E0_03E0_03E0) << 3
        // The digits from 26 on are the characters from "2" on, 73 below where the letters would go on.
        let isNumber = (digits &+ 0x6666_6666_6666_6666) >> 7 & 0x0101_0101_0101_0101
        return digits &+ 0x6161_6161_6161_6161 &- isNumber &* 73
    }
}
