internal import StateJSON

/// Throws where the bytes end early or do not fit together.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private(set) var offset: Int

    init(_ bytes: UnsafeRawBufferPointer, offset: Int = 0) {
        self.bytes = bytes
        self.offset = offset
    }

    var isAtEnd: Bool { offset == bytes.count }

    @inline(__always)
    mutating func byte() throws(SegmentFault) -> UInt8 {
        guard offset < bytes.count else { throw .cut }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func number() throws(SegmentFault) -> UInt64 {
        let first = try byte()
        if first < 0x80 { return UInt64(first) }
        var value = UInt64(first & 0x7F)
        for shift in stride(from: 7, through: 63, by: 7) {
            let next = try byte()
            // The tenth byte has the one bit that is left.
            guard shift < 63 || next < 2 else { throw .malformed }
            value |= UInt64(next & 0x7F) << UInt64(shift)
            if next < 0x80 { return value }
        }
        throw .malformed
    }

    mutating func count(upTo limit: Int) throws(SegmentFault) -> Int {
        let value = try number()
        guard limit >= 0, value <= UInt64(limit) else { throw .malformed }
        return Int(value)
    }

    /// Each element takes at least one of the bytes that are left.
    mutating func count() throws(SegmentFault) -> Int { try count(upTo: bytes.count - offset) }

    /// It was written plus one; 0 is nil.
    mutating func optionalCount() throws(SegmentFault) -> Int? {
        let value = try number()
        guard value > 0 else { return nil }
        guard value - 1 <= UInt64(bytes.count - offset) else { throw .malformed }
        return Int(value - 1)
    }

    mutating func signed() throws(SegmentFault) -> Int64 {
        let value = try number()
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    mutating func string() throws(SegmentFault) -> String {
        String(decoding: try raw(try count()), as: UTF8.self)
    }

    mutating func skipString() throws(SegmentFault) { _ = try raw(try count()) }

    mutating func raw(_ count: Int) throws(SegmentFault) -> UnsafeRawBufferPointer {
        guard count <= bytes.count - offset else { throw .cut }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }

    mutating func text(like model: [UInt8]) throws(SegmentFault) -> [UInt8] {
        let prefix = try count(upTo: model.count)
        let suffix = try count(upTo: model.count - prefix)
        let middle = try raw(try count())
        let count = prefix + middle.count + suffix
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            let text = UnsafeMutableRawBufferPointer(buffer)
            model.withUnsafeBytes { model in
                text.copyMemory(from: UnsafeRawBufferPointer(rebasing: model[..<prefix]))
                UnsafeMutableRawBufferPointer(rebasing: text[prefix...]).copyMemory(from: middle)
                UnsafeMutableRawBufferPointer(rebasing: text[(prefix + middle.count)...])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: model[(model.count - suffix)...]))
            }
            initialized = count
        }
    }
}

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
