internal import StateJSON

/// Numbers are LEB128: seven bits a byte, the least significant first, with the top bit set on all bytes but the last.
package struct ByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    @inline(__always)
    mutating func byte(_ byte: UInt8) { bytes.append(byte) }

    @inline(__always)
    mutating func number(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    @inline(__always)
    mutating func number(_ value: Int) { number(UInt64(truncatingIfNeeded: value)) }

    @inline(__always)
    mutating func signed(_ value: Int64) { number(UInt64(bitPattern: value << 1 ^ value >> 63)) }

    mutating func string(_ text: String) {
        number(text.utf8.count)
        raw(text)
    }

    @inline(__always)
    mutating func raw(_ more: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: more) }

    @inline(__always)
    mutating func raw(_ more: [UInt8]) { bytes.append(contentsOf: more) }

    mutating func raw(_ text: String) { text.withBytes { bytes.append(contentsOf: $0) } }

    /// The difference is how many bytes at the start and at the end are the model's, and the bytes between.
    mutating func text(_ text: [UInt8], like model: [UInt8]) {
        let shorter = min(text.count, model.count)
        let prefix = text.span.bytes.commonPrefix(model.span.bytes, upTo: shorter)
        let suffix = text.span.bytes.commonSuffix(model.span.bytes, upTo: shorter - prefix)
        number(prefix)
        number(suffix)
        number(text.count - prefix - suffix)
        bytes.append(contentsOf: text[prefix..<text.count - suffix])
    }
}

extension RawSpan {
    /// `limit` is at most the size of either.
    fileprivate func commonPrefix(_ other: RawSpan, upTo limit: Int) -> Int {
        var count = 0
        while count + 8 <= limit {
            let difference =
                unsafeLoadUnaligned(fromByteOffset: count, as: UInt64.self).littleEndian
                ^ other.unsafeLoadUnaligned(fromByteOffset: count, as: UInt64.self).littleEndian
            if difference != 0 { return count + difference.trailingZeroBitCount / 8 }
            count += 8
        }
        while count < limit, byte(count) == other.byte(count) { count += 1 }
        return count
    }

    /// `limit` is at most the size of either.
    fileprivate func commonSuffix(_ other: RawSpan, upTo limit: Int) -> Int {
        var count = 0
        while count + 8 <= limit {
            let difference =
                unsafeLoadUnaligned(fromByteOffset: byteCount - count - 8, as: UInt64.self).littleEndian
                ^ other.unsafeLoadUnaligned(fromByteOffset: other.byteCount - count - 8, as: UInt64.self).littleEndian
            if difference != 0 { return count + difference.leadingZeroBitCount / 8 }
            count += 8
        }
        while count < limit, byte(byteCount - count - 1) == other.byte(other.byteCount - count - 1) { count += 1 }
        return count
    }

    private func byte(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
}
