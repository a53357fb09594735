/// The encoder of the next value in a session, which is also its single-value container.
struct JSONValueEncoder: Encoder, SingleValueEncodingContainer {
    let session: JSONEncodingSession
    private let depth: Int

    init(_ session: JSONEncodingSession) {
        self.session = session
        depth = session.depth
    }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        let isDictionary = ObjectIdentifier(type) == DictionaryKeyProbe.keyType
        let id = session.container(atDepth: depth, isObject: true, isSorted: isDictionary)
        return keyed(id)
    }

    private func keyed<Key: CodingKey>(_ id: Int) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(JSONKeyedEncoding<Key>(session: session, id: id, depth: depth))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        let id = session.container(atDepth: depth, isObject: false, isSorted: false)
        return JSONUnkeyedEncoding(session: session, id: id, depth: depth)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { session.write { $0.raw("null") } }
    func encode(_ value: Bool) { session.write { $0.bool(value) } }
    func encode(_ value: String) { session.write { $0.string(value) } }
    func encode(_ value: Double) throws { try session.number(value) }
    func encode(_ value: Float) throws { try session.number(value) }
    func encode(_ value: Int) { session.write { $0.integer(value) } }
    func encode(_ value: Int8) { session.write { $0.integer(value) } }
    func encode(_ value: Int16) { session.write { $0.integer(value) } }
    func encode(_ value: Int32) { session.write { $0.integer(value) } }
    func encode(_ value: Int64) { session.write { $0.integer(value) } }
    func encode(_ value: UInt) { session.write { $0.integer(value) } }
    func encode(_ value: UInt8) { session.write { $0.integer(value) } }
    func encode(_ value: UInt16) { session.write { $0.integer(value) } }
    func encode(_ value: UInt32) { session.write { $0.integer(value) } }
    func encode(_ value: UInt64) { session.write { $0.integer(value) } }
    func encode(_ value: some Encodable) throws { try session.encode(value) }
}

/// Finds the key type with which a dictionary with string-like keys encodes itself; it is private to the standard library.
///
/// A dictionary inside another type's `encode(to:)` does not pass through the session, so the session cannot check its
/// type; its key type shows in the call that asks for a container.
private enum DictionaryKeyProbe {
    static let keyType: ObjectIdentifier? = {
        let probe = Probe()
        // The probe's containers write nothing and throw nothing.
        try? [String: Int]().encode(to: probe)
        return probe.found.keyType
    }()

    private final class Found {
        var keyType: ObjectIdentifier?
    }

    private struct Probe: Encoder {
        let found = Found()
        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }
        func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
            found.keyType = ObjectIdentifier(type)
            var writer = JSONWriter()
            return JSONValueEncoder(JSONEncodingSession(taking: &writer)).plainContainer()
        }
        func unkeyedContainer() -> any UnkeyedEncodingContainer {
            var writer = JSONWriter()
            return JSONValueEncoder(JSONEncodingSession(taking: &writer)).unkeyedContainer()
        }
        func singleValueContainer() -> any SingleValueEncodingContainer {
            var writer = JSONWriter()
            return JSONValueEncoder(JSONEncodingSession(taking: &writer))
        }
    }
}

extension JSONValueEncoder {
    /// A keyed container that does not ask the probe for the dictionary's key type, for use by the probe.
    fileprivate func plainContainer<Key: CodingKey>() -> KeyedEncodingContainer<Key> {
        keyed(session.container(atDepth: depth, isObject: true, isSorted: false))
    }
}

private struct JSONKeyedEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let session: JSONEncodingSession
    let id: Int
    let depth: Int

    var codingPath: [any CodingKey] { [] }

    @inline(__always)
    private func begin(_ key: Key) -> JSONValueEncoder {
        session.beginElement(id, depth: depth, key: key.stringValue)
        return JSONValueEncoder(session)
    }

    func encodeNil(forKey key: Key) { begin(key).encodeNil() }
    func encode(_ value: Bool, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: String, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: Double, forKey key: Key) throws { try begin(key).encode(value) }
    func encode(_ value: Float, forKey key: Key) throws { try begin(key).encode(value) }
    func encode(_ value: Int, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: Int8, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: Int16, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: Int32, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: Int64, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: UInt, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: UInt8, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: UInt16, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: UInt32, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: UInt64, forKey key: Key) { begin(key).encode(value) }
    func encode(_ value: some Encodable, forKey key: Key) throws { try begin(key).encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy keyType: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        begin(key).container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { begin(key).unkeyedContainer() }

    /// The encoder of the same object: the fields of a superclass are members beside those of its subclass.
    func superEncoder() -> any Encoder { JSONSuperEncoder(session: session, depth: depth) }
    func superEncoder(forKey key: Key) -> any Encoder { begin(key) }
}

/// The encoder of a superclass, which writes into the container that is open at a depth.
private struct JSONSuperEncoder: Encoder {
    let session: JSONEncodingSession
    let depth: Int

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        let id = session.container(atDepth: depth, isObject: true, isSorted: false)
        return KeyedEncodingContainer(JSONKeyedEncoding<Key>(session: session, id: id, depth: depth))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        let id = session.container(atDepth: depth, isObject: false, isSorted: false)
        return JSONUnkeyedEncoding(session: session, id: id, depth: depth)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { JSONValueEncoder(session) }
}

private struct JSONUnkeyedEncoding: UnkeyedEncodingContainer {
    let session: JSONEncodingSession
    let id: Int
    let depth: Int

    var codingPath: [any CodingKey] { [] }
    var count: Int { session.count(id, depth: depth) }

    private func begin() -> JSONValueEncoder {
        session.beginElement(id, depth: depth)
        return JSONValueEncoder(session)
    }

    func encodeNil() { begin().encodeNil() }
    func encode(_ value: Bool) { begin().encode(value) }
    func encode(_ value: String) { begin().encode(value) }
    func encode(_ value: Double) throws { try begin().encode(value) }
    func encode(_ value: Float) throws { try begin().encode(value) }
    func encode(_ value: Int) { begin().encode(value) }
    func encode(_ value: Int8) { begin().encode(value) }
    func encode(_ value: Int16) { begin().encode(value) }
    func encode(_ value: Int32) { begin().encode(value) }
    func encode(_ value: Int64) { begin().encode(value) }
    func encode(_ value: UInt) { begin().encode(value) }
    func encode(_ value: UInt8) { begin().encode(value) }
    func encode(_ value: UInt16) { begin().encode(value) }
    func encode(_ value: UInt32) { begin().encode(value) }
    func encode(_ value: UInt64) { begin().encode(value) }
    func encode(_ value: some Encodable) throws { try begin().encode(value) }

    func nestedContainer<Nested: CodingKey>(keyedBy keyType: Nested.Type) -> KeyedEncodingContainer<Nested> {
        begin().container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { begin().unkeyedContainer() }
    func superEncoder() -> any Encoder { begin() }
}
