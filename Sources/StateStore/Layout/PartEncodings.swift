internal import StateJSON
internal import Synchronization

/// The encodings of a map's subtrees, kept for the next time that the whole map is encoded.
///
/// A map of many elements is encoded in parts, its subtrees of at most 64 elements. A part that is the same object as at
/// the last encoding is copied, so an encoding after k changes encodes about k parts anew. The kept parts occupy at most
/// ``bytesMax`` bytes, and keep the elements alive that they have encoded. Any thread may use it.
final class PartEncodings<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    typealias Map = PersistentMap<Key, Value>
    /// A part keeps its node, so that no other node gets the node's identity.
    private typealias Parts = [ObjectIdentifier: (node: Map.Node, bytes: [UInt8])]

    private let kept = Mutex<Parts>([:])
    private static var partCountMax: Int { 64 }
    /// How many bytes of parts are kept; a map with more of them encodes the rest anew each time.
    static var bytesMax: Int { 16 << 20 }

    func write(
        _ map: Map, to writer: inout JSONWriter, _ element: (Key, Value, inout JSONWriter) throws -> Void
    ) throws {
        var isFirst = true
        guard map.count > Self.partCountMax else {
            return try map.visit { (key, value) throws in
                writer.separator(&isFirst)
                try element(key, value, &writer)
            }
        }
        try visitParts(of: map, element) { members throws in
            writer.separator(&isFirst)
            writer.raw(members)
        }
    }

    /// Hands out the map as an object, as ``MemberTexts`` says.
    func visitTexts(
        _ map: Map, _ take: ([UInt8]) throws -> Void, _ member: (Key, Value, inout JSONWriter) throws -> Void
    ) throws {
        var texts = ObjectTexts()
        try visitParts(of: map, member) { members throws in try texts.add(to: take) { $0.raw(members) } }
        try texts.end(to: take)
    }

    /// Visits the encodings of all elements, some of them at once with commas between.
    private func visitParts(
        of map: Map, _ element: (Key, Value, inout JSONWriter) throws -> Void, _ body: ([UInt8]) throws -> Void
    ) throws {
        let known = kept.withLock { $0 }
        var parts = Parts(minimumCapacity: known.count)
        var bytesCount = 0
        try map.visitParts(of: Self.partCountMax) { (node, isWhole) throws in
            guard isWhole else {
                var writer = JSONWriter()
                try element(node.key, node.value, &writer)
                return try body(writer.bytes)
            }
            let identity = ObjectIdentifier(node)
            let part = try known[identity] ?? (node, Self.encode(node, element))
            try body(part.bytes)
            bytesCount += part.bytes.count
            if bytesCount <= Self.bytesMax { parts[identity] = part }
        }
        // The old parts end outside the lock, and with them an adopter's elements.
        _ = kept.withLock { exchange(&$0, with: parts) }
    }

    private static func encode(
        _ node: Map.Node, _ element: (Key, Value, inout JSONWriter) throws -> Void
    ) throws -> [UInt8] {
        var writer = JSONWriter()
        var isFirst = true
        try Map.visit(node) { (key, value) throws in
            writer.separator(&isFirst)
            try element(key, value, &writer)
        }
        return writer.bytes
    }
}
