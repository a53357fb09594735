extension JSON {
    /// Fields as the type encodes them, dictionaries and sets sorted: equal values have equal bytes, in every process.
    ///
    /// Throws for NaN and the infinities, and for a type that writes to two of its containers alternately.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        var writer = JSONWriter()
        try write(value, to: &writer)
        return writer.bytes
    }

    package static func write(_ value: some Encodable, to writer: inout JSONWriter) throws {
        let session = JSONEncodingSession(taking: &writer)
        defer { session.giveBack(&writer) }
        try session.encode(value)
        try session.finish()
    }
}

/// One call to encode: the bytes so far and the open containers.
///
/// All containers write into one buffer. The session closes a nested container when its parent is written to again. One thread at
/// a time uses a session, which keeps its memory for the next call.
package final class JSONEncodingSession {
    // exclusivity unchecked: one call to encode uses the variables, and a check takes as long as ten accesses.

    @exclusivity(unchecked) var writer: JSONWriter
    @exclusivity(unchecked) private var open: [OpenContainer] = []
    @exclusivity(unchecked) private var nextID = 0
    @exclusivity(unchecked) private var valueStart: Int
    @exclusivity(unchecked) private var misuse: String?

    private struct OpenContainer {
        let id: Int
        let isObject: Bool
        var count = 0
        /// Sorted when a dictionary closes; nil for anything else.
        var memberStarts: [Int]?
    }

    fileprivate let isKeeping: Bool
    /// The container for the next value with the same keys: to make one takes two look-ups of metadata.
    @exclusivity(unchecked) fileprivate var kept: (keys: ObjectIdentifier, container: AnyObject)?

    /// A keeping session is for many values, and lives until ``end()``.
    package init(isKeeping: Bool = false) { (writer, valueStart, self.isKeeping) = (JSONWriter(), 0, isKeeping) }

    package func end() { kept = nil }

    /// Nil where the value has the same bytes as the earlier one.
    package func text(of value: some Encodable, unlike earlier: [UInt8]) throws -> [UInt8]? {
        // The buffer of a long value, also of one that has not changed or cannot be encoded, serves no short one.
        defer { if writer.bytes.capacity > 64 << 10 { writer.bytes = [] } }
        if writer.bytes.isEmpty {
            writer.bytes.reserveCapacity(earlier.count + 16)
        } else {
            writer.bytes.removeAll(keepingCapacity: true)
        }
        // The outermost container has the same number for each value.
        nextID = 0
        // It is not empty behind a failure.
        if !open.isEmpty { open.removeAll(keepingCapacity: true) }
        (valueStart, misuse) = (0, nil)
        try encode(value)
        try finish()
        let isSame = writer.bytes.withUnsafeBufferPointer { bytes in earlier.withUnsafeBufferPointer(bytes.hasBytes) }
        return isSame ? nil : Swift.exchange(&writer.bytes, with: []).trimmed
    }

    /// ``giveBack(_:)`` returns the buffer.
    init(taking other: inout JSONWriter) {
        (writer, valueStart, isKeeping) = (JSONWriter(capacity: 0), other.bytes.count, false)
        swap(&writer, &other)
    }

    func giveBack(_ other: inout JSONWriter) { swap(&writer, &other) }

    var encoder: JSONValueEncoder { JSONValueEncoder(session: self, depth: open.count) }

    /// The value becomes `{}` where it encodes nothing.
    private var isValueDue: Bool { writer.bytes.count == valueStart }

    func finish() throws {
        close(to: 0)
        if isValueDue { writer.raw("{}") }
        if let misuse { throw EncodingError.invalidValue((), .init(codingPath: [], debugDescription: misuse)) }
    }

    func encode<Value: Encodable>(_ value: Value) throws {
        if Value.self == [Int].self, let integers = value as? [Int] {
            return writer.array(integers) { $1.integer($0) }
        }
        if let kind = FoundationValue(Value.self) { return try encode(value, as: kind) }
        // A collection has the size of a pointer and counts references: that spares other types the slower cast.
        if MemoryLayout<Value>.size == MemoryLayout<Int>.size, !_isPOD(Value.self),
            let collection = value as? any CollectionEncodable, try collection.encodeElements(in: self)
        {
            return
        }
        try value.encode(to: encoder)
    }

    func number<Number: BinaryFloatingPoint & CustomStringConvertible>(_ value: Number) throws {
        guard writer.number(value) else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "JSON has no number for \(value)"))
        }
    }

    /// The value may have opened one at this depth already.
    func container(atDepth depth: Int, isObject: Bool, isSorted: Bool) -> Int {
        if open.count > depth {
            close(to: depth + 1)
            if open[depth].isObject != isObject { misuse = "one value asked for two kinds of container" }
            return open[depth].id
        }
        nextID += 1
        writer.byte(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
        open.append(OpenContainer(id: nextID, isObject: isObject, memberStarts: isSorted ? [] : nil))
        return nextID
    }

    func beginElement(_ id: Int, depth: Int, key: String? = nil) -> JSONValueEncoder {
        close(to: depth + 1)
        guard open.count == depth + 1, open[depth].id == id else {
            misuse = "a container was written to after the one around it"
            return encoder
        }
        if isValueDue { writer.raw("{}") }
        if open[depth].count > 0 { writer.byte(UInt8(ascii: ",")) }
        open[depth].count += 1
        open[depth].memberStarts?.append(writer.bytes.count)
        if let key {
            writer.string(key)
            writer.byte(UInt8(ascii: ":"))
        }
        valueStart = writer.bytes.count
        return encoder
    }

    func count(_ id: Int, depth: Int) -> Int {
        open.count > depth && open[depth].id == id ? open[depth].count : 0
    }

    func close(to depth: Int) {
        while open.count > depth {
            if isValueDue { writer.raw("{}") }
            let container = open.removeLast()
            if let starts = container.memberStarts { sort(starts) }
            writer.byte(container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
        }
    }

    private func sort(_ starts: [Int]) {
        guard starts.count > 1, let first = starts.first else { return }
        let ends = starts.dropFirst().map { $0 - 1 } + [writer.bytes.count]
        let members = zip(starts, ends).map { writer.bytes[$0..<$1] }
        let sorted = members.sorted { $0.lexicographicallyPrecedes($1) }
        writer.bytes.replaceSubrange(first..., with: Array(sorted.joined(separator: [UInt8(ascii: ",")])))
    }

    fileprivate func array(of elements: [[UInt8]]) {
        let sorted = elements.sorted { $0.lexicographicallyPrecedes($1) }
        writer.array(sorted) { $1.raw($0) }
    }
}

/// A collection whose order differs from process to process, which the session therefore encodes itself.
private protocol CollectionEncodable {
    /// False where the collection has to encode itself.
    func encodeElements(in session: JSONEncodingSession) throws -> Bool
}

extension Set: CollectionEncodable where Element: Encodable {
    fileprivate func encodeElements(in session: JSONEncodingSession) throws -> Bool {
        session.array(of: try map { try JSON.encode($0) })
        return true
    }
}

extension Dictionary: CollectionEncodable where Key: Encodable, Value: Encodable {
    fileprivate func encodeElements(in session: JSONEncodingSession) throws -> Bool {
        if Key.self == String.self || Key.self == Int.self || Key.self is any CodingKeyRepresentable.Type {
            return false
        }
        // The standard library encodes a dictionary with other keys as an array of alternating keys and values.
        session.array(of: try map { try JSON.encode($0) + [UInt8(ascii: ",")] + JSON.encode($1) })
        return true
    }
}

private final class KeptContainer<Key: CodingKey> {
    let container: KeyedEncodingContainer<Key>

    init(_ container: KeyedEncodingContainer<Key>) { self.container = container }
}

struct JSONValueEncoder: Encoder, SingleValueEncodingContainer {
    let session: JSONEncodingSession
    let depth: Int

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        let isDictionary = ObjectIdentifier(type) == DictionaryKeyProbe.keyType
        let id = session.container(atDepth: depth, isObject: true, isSorted: isDictionary)
        // The outermost container has the number 1.
        if id == 1, let kept = session.kept, kept.keys == ObjectIdentifier(type) {
            return unsafeDowncast(kept.container, to: KeptContainer<Key>.self).container
        }
        let container = KeyedEncodingContainer(JSONKeyedEncoding<Key>(session: session, id: id, depth: depth))
        if id == 1, session.isKeeping { session.kept = (ObjectIdentifier(type), KeptContainer(container)) }
        return container
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        let id = session.container(atDepth: depth, isObject: false, isSorted: false)
        return JSONUnkeyedEncoding(session: session, id: id, depth: depth)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { session.writer.raw("null") }
    func encode(_ value: Bool) { session.writer.bool(value) }
    func encode(_ value: String) { session.writer.string(value) }
    func encode(_ value: Double) throws { try session.number(value) }
    func encode(_ value: Float) throws { try session.number(value) }
    @inline(__always)
    func encode<Number: FixedWidthInteger & Encodable>(_ value: Number) throws {
        guard Number.bitWidth <= 64 else {
            let context = EncodingError.Context(codingPath: [], debugDescription: "a whole number has at most 64 bits")
            throw EncodingError.invalidValue(value, context)
        }
        session.writer.integer(value)
    }
    func encode(_ value: some Encodable) throws { try session.encode(value) }
}

/// The key type of a dictionary is private to the standard library, and shows only in the call that asks for a
/// container.
private final class DictionaryKeyProbe: Encoder {
    static let keyType: ObjectIdentifier? = {
        let probe = DictionaryKeyProbe()
        // Without members, nothing is written and nothing thrown.
        try? [String: Int]().encode(to: probe)
        return probe.found
    }()

    private var found: ObjectIdentifier?
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        found = ObjectIdentifier(type)
        // The encoder's own container would ask the probe for the key type.
        return KeyedEncodingContainer(JSONKeyedEncoding<Key>(session: JSONEncodingSession(), id: 0, depth: 0))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { JSONEncodingSession().encoder.unkeyedContainer() }
    func singleValueContainer() -> any SingleValueEncodingContainer { JSONEncodingSession().encoder }
}

private struct JSONKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let session: JSONEncodingSession
    let id: Int
    let depth: Int

    var codingPath: [any CodingKey] { [] }

    @inline(__always)
    private func begin(_ key: Key) -> JSONValueEncoder { session.beginElement(id, depth: depth, key: key.stringValue) }

    func encodeNil(forKey key: Key) { begin(key).encodeNil() }
    func encode(_ value: Bool, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: String, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: Double, forKey key: Key) throws { try begin(key).encode(value) }
    func encode(_ value: Float, forKey key: Key) throws { try begin(key).encode(value) }
    @inline(__always)
    func encode(_ value: some FixedWidthInteger & Encodable, forKey key: Key) throws { try begin(key).encode(value) }
    func encode(_ value: some Encodable, forKey key: Key) throws { try begin(key).encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy keyType: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        begin(key).container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { begin(key).unkeyedContainer() }

    /// The fields of a superclass are members beside those of its subclass.
    func superEncoder() -> any Encoder { JSONValueEncoder(session: session, depth: depth) }
    func superEncoder(forKey key: Key) -> any Encoder { begin(key) }
}

private struct JSONUnkeyedEncoding: UnkeyedEncodingContainer {
    let session: JSONEncodingSession
    let id: Int
    let depth: Int

    var codingPath: [any CodingKey] { [] }
    var count: Int { session.count(id, depth: depth) }

    private func begin() -> JSONValueEncoder { session.beginElement(id, depth: depth) }

    func encodeNil() { begin().encodeNil() }
    func encode(_ value: Bool) { begin().encode(value) }
    func encode(_ value: String) { begin().encode(value) }
    func encode(_ value: Double) throws { try begin().encode(value) }
    func encode(_ value: Float) throws { try begin().encode(value) }
    @inline(__always)
    func encode(_ value: some FixedWidthInteger & Encodable) throws { try begin().encode(value) }
    func encode(_ value: some Encodable) throws { try begin().encode(value) }

    func nestedContainer<Nested: CodingKey>(keyedBy keyType: Nested.Type) -> KeyedEncodingContainer<Nested> {
        begin().container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { begin().unkeyedContainer() }
    func superEncoder() -> any Encoder { begin() }
}
