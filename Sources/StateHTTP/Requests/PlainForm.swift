internal import StateJSON
internal import StateStore

/// The one spelling of an action that the store would record as it is, byte by byte.
///
/// The store records an action as its type encodes it. Where a body has just those bytes, the store records the body, which
/// spares the encoding. A type has a plain form when its fields are all required and are strings, whole numbers, numbers or
/// booleans, and two samples of it encode the members that they were decoded from, in that order.
struct PlainForm: Sendable {
    private enum Kind { case string, integer, number, boolean }

    /// For each field the bytes between the value before it, or the opening brace, and its value.
    private let fields: [(lead: [UInt8], kind: Kind)]
    /// The bytes behind the last value, or behind the opening brace where there is no field, up to the end of the payload.
    private let end: [UInt8]

    /// Derives the plain form of an action type, or returns nil where it has none.
    init?(_ type: any Action.Type) {
        var head = JSONWriter()
        head.raw("\"type\":")
        head.string(type.type)
        let schema = SchemaProbe.schema(of: type)
        guard case .object(let properties)? = schema[pointer: "/properties"], !properties.members.isEmpty else {
            guard Self.isPlain(type, "{}", .first), Self.isPlain(type, "{}", .second) else { return nil }
            fields = []
            end = head.bytes
            return
        }
        guard case .array(let required)? = schema[pointer: "/required"], required.count == properties.members.count
        else { return nil }
        head.raw(",\"payload\":{")
        var fields: [(lead: [UInt8], kind: Kind)] = []
        var (first, second) = ("{", "{")
        for (name, schema) in properties.members {
            guard case .object(let schema) = schema, schema["enum"] == nil, case .string(let kind)? = schema["type"],
                let (kind, sample) = Self.kind(kind)
            else { return nil }
            var key = JSONWriter()
            if !fields.isEmpty { key.raw(",") }
            key.string(name)
            key.raw(":")
            fields.append((fields.isEmpty ? head.bytes + key.bytes : key.bytes, kind))
            first += String(decoding: key.bytes, as: UTF8.self) + sample.first
            second += String(decoding: key.bytes, as: UTF8.self) + sample.second
        }
        guard Self.isPlain(type, first + "}", .first), Self.isPlain(type, second + "}", .second) else { return nil }
        self.fields = fields
        end = [UInt8(ascii: "}")]
    }

    private static func kind(_ name: String) -> (Kind, sample: (first: String, second: String))? {
        let samples = (SchemaProbe.Samples.first, SchemaProbe.Samples.second)
        switch name {
        case "string": return (.string, ("\"\(samples.0.string)\"", "\"\(samples.1.string)\""))
        case "integer": return (.integer, ("\(samples.0.integer)", "\(samples.1.integer)"))
        case "number": return (.number, ("\(samples.0.integer)", "\(samples.1.integer)"))
        case "boolean": return (.boolean, ("\(samples.0.boolean)", "\(samples.1.boolean)"))
        default: return nil
        }
    }

    private static func isPlain(_ type: any Action.Type, _ expected: String, _ samples: SchemaProbe.Samples) -> Bool {
        // A type without a sample, or whose sample cannot be encoded, has no plain form.
        guard let sample = SchemaProbe.instance(of: type, samples), let encoded = try? JSON.encode(sample) else {
            return false
        }
        return encoded == Array(expected.utf8)
    }

    /// A body in the plain form.
    struct Match {
        /// Where the metadata lie in the body; nil where there are none.
        var meta: Range<Int>?
    }

    /// Reads a body, which holds an action of the type; an ID may come before the type, and metadata behind the payload.
    ///
    /// O(n) in the bytes.
    ///
    /// - Returns: nil where the body does not have the plain form.
    func match(_ body: [UInt8]) -> Match? {
        body.withUnsafeBufferPointer { bytes in
            var rest = Rest(bytes: bytes)
            guard rest.skip(UInt8(ascii: "{")) else { return nil }
            if rest.skip("\"id\":") {
                guard rest.skipString(), rest.skip(UInt8(ascii: ",")) else { return nil }
            }
            for field in fields {
                guard rest.skip(field.lead) else { return nil }
                let isValue =
                    switch field.kind {
                    case .string: rest.skipString()
                    case .integer: rest.skipInteger(digitsMax: 20)
                    // Up to 2^24, a Float has every whole number, and the encoder spells it without a fraction.
                    case .number: rest.skipInteger(digitsMax: 7)
                    case .boolean: rest.skip("true") || rest.skip("false")
                    }
                guard isValue else { return nil }
            }
            guard rest.skip(end) else { return nil }
            var match = Match()
            if rest.skip(",\"meta\":") {
                let start = rest.index
                guard rest.skipObject() else { return nil }
                match.meta = start..<rest.index
            }
            return rest.skip(UInt8(ascii: "}")) && rest.isEmpty ? match : nil
        }
    }
}

/// The bytes of a JSON document that have not been matched yet.
private struct Rest {
    let bytes: UnsafeBufferPointer<UInt8>
    private(set) var index = 0

    init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    var isEmpty: Bool { index == bytes.count }

    mutating func skip(_ expected: [UInt8]) -> Bool { expected.withUnsafeBufferPointer { skip($0) } }

    mutating func skip(_ expected: StaticString) -> Bool {
        skip(UnsafeBufferPointer(start: expected.utf8Start, count: expected.utf8CodeUnitCount))
    }

    mutating func skip(_ expected: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == expected else { return false }
        index += 1
        return true
    }

    private mutating func skip(_ expected: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count - index >= expected.count,
            UnsafeBufferPointer(rebasing: bytes[index..<index + expected.count]).hasBytes(of: expected)
        else { return false }
        index += expected.count
        return true
    }

    /// Skips a string without escapes, which has one spelling.
    mutating func skipString() -> Bool {
        guard skip(UInt8(ascii: "\"")) else { return false }
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\\") { return false }
            index += 1
            if byte == UInt8(ascii: "\"") { return true }
        }
        return false
    }

    /// Skips an object in which each value has one spelling: no white space, no escapes, and no numbers but whole ones.
    mutating func skipObject() -> Bool {
        var depth = 0
        repeat {
            guard index < bytes.count else { return false }
            switch bytes[index] {
            case UInt8(ascii: "\""): guard skipString() else { return false }
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                guard skipInteger(digitsMax: 18), index < bytes.count, bytes[index] != UInt8(ascii: "."),
                    bytes[index] | 0x20 != UInt8(ascii: "e")
                else { return false }
            case 0...0x20: return false
            case let byte:
                if byte | 0x20 == UInt8(ascii: "{") { depth += 1 }
                if byte | 0x20 == UInt8(ascii: "}") { depth -= 1 }
                index += 1
            }
        } while depth > 0
        return true
    }

    /// Skips a whole number; minus zero is another spelling of 0.
    mutating func skipInteger(digitsMax: Int) -> Bool {
        if index < bytes.count, bytes[index] == UInt8(ascii: "-") {
            index += 1
            guard index < bytes.count, bytes[index] != UInt8(ascii: "0") else { return false }
        }
        let start = index
        while index < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) { index += 1 }
        return (1...digitsMax).contains(index - start)
    }
}
