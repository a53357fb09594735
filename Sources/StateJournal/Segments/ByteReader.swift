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
