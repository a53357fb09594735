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

    @exclusivity(unchecked) private var entries = [Entry](repeating: Entry(), count: 256)
    private static let bytesMax = 160

    /// Returns the field with this name and value, or nil if RFC 9110 forbids one of them.
    ///
    /// - Parameter known: gets the field where the server reads it.
    func field(
        name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, _ known: inout RequestFields
    ) -> HTTPField? {
        let count = name.count + value.count
        guard count <= Self.bytesMax else {
            guard let field = Self.makeField(name: name, value: value) else { return nil }
            known.formUnion(Self.known(field))
            return field
        }
        let slot = Self.slot(name: name, value: value)
        if entries[slot].nameCount == name.count, entries[slot].bytes.count == count,
            Self.isEqual(entries[slot].bytes, name, value)
        {
            known.formUnion(entries[slot].known)
            return entries[slot].field
        }
        guard let field = Self.makeField(name: name, value: value) else { return nil }
        let own = Self.known(field)
        known.formUnion(own)
        // What names one request does not come again.
        if own.contains(.idempotencyKey) || own.contains(.requestID) || own.contains(.traceParent) { return field }
        entries[slot] = Entry(bytes: Array(name) + Array(value), nameCount: name.count, field: field, known: own)
        return field
    }

    private static func known(_ field: HTTPField) -> RequestFields {
        RequestField(canonicalName: field.name.canonicalName).map { RequestFields($0) } ?? RequestFields()
    }

    private static func makeField(
        name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>
    ) -> HTTPField? {
        // HTTPField's initializer would turn forbidden bytes into spaces; the server refuses them.
        guard let name = HTTPField.Name(String(decoding: name, as: UTF8.self)), HTTPField.isValidValue(value) else {
            return nil
        }
        return HTTPField(name: name, value: value)
    }

    private static func slot(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) -> Int {
        // Lengths and a few bytes at both ends distinguish the common fields; a full hash would cost more than it
        // saves.
        var hash = UInt64(truncatingIfNeeded: name.count &* 31 &+ value.count)
        for byte in [name.first, name.last, value.first, value.last] {
            hash = (hash ^ UInt64(byte ?? 0)) &* 0x100_0000_01B3
        }
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
