import Glibc
import HTTPMessages
import HTTPTypes

/// A cache of parsed header fields by their bytes.
///
/// Clients send the same `Host`, `User-Agent` and `Accept` with each request. A hit saves the validation and up to
/// three strings for each field. The cache is direct-mapped and fixed in size: a colliding field replaces the older
/// one. It does not store long fields, which tend to be unique or secret. Only the loop thread uses it.
final class FieldCache {
    private struct Entry {
        var bytes: [UInt8] = []
        var nameCount = 0
        var field: HTTPField?
        var known = RequestFields()
    }

    /// A name, for fields whose values differ from request to request.
    private struct NameEntry {
        var bytes: [UInt8] = []
        var name: HTTPField.Name?
        var known = RequestFields()
    }

    @exclusivity(unchecked) private var entries = [Entry](repeating: Entry(), count: 256)
    @exclusivity(unchecked) private var names = [NameEntry](repeating: NameEntry(), count: 64)
    private static let bytesMax = 160

    /// Returns the field with this name and value, or nil if RFC 9110 forbids one of them.
    ///
    /// - Parameter known: gets the field where the server reads it.
    func field(
        name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, _ known: inout RequestFields
    ) -> HTTPField? {
        let count = name.count + value.count
        guard count <= Self.bytesMax else { return makeField(name: name, value: value, &known) }
        let slot = Self.slot(name: name, value: value)
        if entries[slot].nameCount == name.count, entries[slot].bytes.count == count,
            Self.isEqual(entries[slot].bytes, name, value)
        {
            known.formUnion(entries[slot].known)
            return entries[slot].field
        }
        var own = RequestFields()
        guard let field = makeField(name: name, value: value, &own) else { return nil }
        known.formUnion(own)
        // What names one request does not come again.
        if own.contains(.idempotencyKey) || own.contains(.requestID) || own.contains(.traceParent) { return field }
        entries[slot] = Entry(bytes: Array(name) + Array(value), nameCount: name.count, field: field, known: own)
        return field
    }

    private func makeField(
        name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, _ known: inout RequestFields
    ) -> HTTPField? {
        // HTTPField's initializer would turn forbidden bytes into spaces; the server refuses them.
        guard let name = self.name(name, &known), HTTPField.isValidValue(value) else { return nil }
        return HTTPField(name: name, value: value)
    }

    /// The name with these bytes, or nil if RFC 9110 forbids it.
    private func name(_ bytes: UnsafeBufferPointer<UInt8>, _ known: inout RequestFields) -> HTTPField.Name? {
        let slot = (bytes.count &* 7 &+ Int(bytes.first ?? 0)) & (names.count - 1)
        if names[slot].bytes.count == bytes.count, Self.isEqual(names[slot].bytes, bytes, .init(start: nil, count: 0)),
            let name = names[slot].name
        {
            known.formUnion(names[slot].known)
            return name
        }
        guard let name = HTTPField.Name(String(decoding: bytes, as: UTF8.self)) else { return nil }
        let own = RequestField(canonicalName: name.canonicalName).map { RequestFields($0) } ?? RequestFields()
        known.formUnion(own)
        if bytes.count <= Self.bytesMax { names[slot] = NameEntry(bytes: Array(bytes), name: name, known: own) }
        return name
    }

    private static func slot(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) -> Int {
        // Lengths and a few bytes at both ends distinguish the common fields; a full hash would cost more than it
        // saves.
        var hash = UInt64(truncatingIfNeeded: name.count &* 31 &+ value.count)
        func mix(_ byte: UInt8?) { hash = (hash ^ UInt64(byte ?? 0)) &* 0x100_0000_01B3 }
        mix(name.first)
        mix(name.last)
        mix(value.first)
        mix(value.last)
        return Int((hash ^ (hash >> 23)) & 255)
    }

    private static func isEqual(
        _ bytes: [UInt8], _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress, let nameBase = name.baseAddress else { return false }
            guard memcmp(base, nameBase, name.count) == 0 else { return false }
            guard let valueBase = value.baseAddress, !value.isEmpty else { return true }
            return memcmp(base + name.count, valueBase, value.count) == 0
        }
    }
}
