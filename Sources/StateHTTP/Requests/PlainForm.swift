internal import StateJSON
internal import StateStore

/// The one spelling of an action that the store would record as it is, byte by byte.
///
/// The store records an action as its type encodes it. Where a body has just those bytes, the store records the body, which
/// spares the encoding, and the action decodes from the places of its fields, which spares the document. A type has a plain
/// form when its fields are all required and are strings, whole numbers, numbers or booleans, and two samples of it encode
/// the members that they were decoded from, in that order.
final class PlainForm: Sendable {
    fileprivate enum Kind { case string, integer, number, boolean }

    /// A field of the payload.
    private struct Field {
        let name: String
        let kind: Kind
        /// The bytes between the value before it, or the opening brace, and its value.
        let lead: [UInt8]
    }

    let type: any Action.Type
    private let fields: [Field]
    /// The bytes behind the last value, or behind the opening brace where there is no field, up to the end of the payload.
    private let end: [UInt8]
    /// The names of the fields where the type decodes from a ``FlatObject``, and nil where it takes a document.
    private let names: [String]?
    /// How many levels metadata may have: with that of the body itself as many as the least `depth_max` allows.
    private static let metaDepthMax = 3

    private init(_ type: any Action.Type, _ fields: [Field], end: [UInt8], isReadable: Bool) {
        self.type = type
        self.fields = fields
        self.end = end
        names = isReadable ? fields.map(\.name) : nil
    }

    /// Derives the plain form of an action type; nil where it has none.
    static func of(_ type: any Action.Type) -> PlainForm? {
        var head = JSONWriter()
        head.raw("\"type\":")
        head.string(type.type)
        let schema = SchemaProbe.askedSchema(of: type)
        guard case .object(let properties)? = schema[pointer: "/properties"], !properties.members.isEmpty else {
            guard isPlain(type, "{}", .first), isPlain(type, "{}", .second) else { return nil }
            return PlainForm(type, [], end: head.bytes, isReadable: true).checked([head.bytes])
        }
        guard case .array(let required)? = schema[pointer: "/required"], required.count == properties.members.count
        else { return nil }
        head.raw(",\"payload\":")
        var fields: [Field] = []
        var (first, second) = ("{", "{")
        for (name, schema) in properties.members {
            guard case .object(let schema) = schema, schema["enum"] == nil, case .string(let kind)? = schema["type"],
                let (kind, sample) = Self.kind(kind)
            else { return nil }
            var key = JSONWriter()
            if !fields.isEmpty { key.raw(",") }
            key.string(name)
            key.raw(":")
            let lead = fields.isEmpty ? head.bytes + [UInt8(ascii: "{")] + key.bytes : key.bytes
            fields.append(Field(name: name, kind: kind, lead: lead))
            first += String(decoding: key.bytes, as: UTF8.self) + sample.first
            second += String(decoding: key.bytes, as: UTF8.self) + sample.second
        }
        (first, second) = (first + "}", second + "}")
        guard isPlain(type, first, .first), isPlain(type, second, .second) else { return nil }
        // Names beyond ASCII have several spellings, which only a document tells apart.
        let isReadable =
            fields.count <= FlatObject.countMax && fields.allSatisfy { $0.name.utf8.allSatisfy { $0 < 0x80 } }
        return PlainForm(type, fields, end: [UInt8(ascii: "}")], isReadable: isReadable)
            .checked([first, second].map { head.bytes + Array($0.utf8) })
    }

    /// This form, or one that takes a document, where the type does not decode from the places of its fields what it decodes
    /// from a document.
    ///
    /// - Parameter samples: bodies in this form, without their outermost braces.
    private func checked(_ samples: [[UInt8]]) -> PlainForm {
        let type = type
        for sample in samples {
            let body = [UInt8(ascii: "{")] + sample + [UInt8(ascii: "}")]
            guard let object = match(body)?.payload, let action = try? object.decode(type),
                let payload = try? JSON.encode(action),
                fields.isEmpty || sample.reversed().starts(with: payload.reversed())
            else { return PlainForm(type, fields, end: end, isReadable: false) }
        }
        return self
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
        /// Where the ID of the action lies in the body, without its quotes; nil where there is none.
        var id: Range<Int>?
        /// Where the metadata lie in the body; nil where there are none.
        var meta: Range<Int>?
        /// The fields of the payload; nil where the type decodes from a document only.
        var payload: FlatObject?
    }

    /// Reads a body of an action of the type; an ID may come before the type, and metadata behind the payload.
    ///
    /// O(n) in the bytes.
    ///
    /// - Returns: nil where the body does not have the plain form.
    func match(_ body: [UInt8]) -> Match? {
        // The places of the values have 32 bits.
        guard body.count <= Int32.max else { return nil }
        var match = Match()
        var places = SIMD16<UInt32>()
        let isMatch = body.withUnsafeBufferPointer { bytes in
            var text = PlainScanner(bytes)
            guard text.skip(UInt8(ascii: "{")) else { return false }
            if text.skip("\"id\":") {
                match.id = text.string()
                guard match.id != nil, text.skip(UInt8(ascii: ",")) else { return false }
            }
            for index in fields.indices {
                guard text.skip(fields[index].lead), let place = text.value(fields[index].kind) else { return false }
                guard names != nil else { continue }
                places[2 * index] = UInt32(truncatingIfNeeded: place.lowerBound)
                places[2 * index + 1] = UInt32(truncatingIfNeeded: place.upperBound)
            }
            guard text.skip(end) else { return false }
            if text.skip(",\"meta\":") {
                match.meta = text.object(depthMax: Self.metaDepthMax)
                guard match.meta != nil else { return false }
            }
            guard text.skip(UInt8(ascii: "}")), text.isAtEnd else { return false }
            return !text.hasUnicode || String(validating: bytes, as: UTF8.self) != nil
        }
        guard isMatch else { return nil }
        if let names { match.payload = FlatObject(in: body, names: names, places: places) }
        return match
    }
}

/// The plain forms of some action types.
struct PlainForms: Sendable {
    /// The forms by the hashes of their names as JSON; a form that a hash finds has yet to match.
    private let forms: [ContentHash: PlainForm]

    init(_ types: some Sequence<any Action.Type>) {
        let forms = types.compactMap { type in
            PlainForm.of(type).map { form in
                var name = JSONWriter()
                name.string(type.type)
                return (ContentHash(Array(name.bytes.dropFirst().dropLast())), form)
            }
        }
        self.forms = Dictionary(forms) { first, _ in first }
    }

    /// The form of the action that a body may hold, by the name behind `"type":`; O(n) in the length of the name.
    func form(of body: [UInt8]) -> PlainForm? {
        body.withUnsafeBufferPointer { bytes in
            var text = PlainScanner(bytes)
            guard text.skip(UInt8(ascii: "{")) else { return nil }
            if text.skip("\"id\":") { guard text.string() != nil, text.skip(UInt8(ascii: ",")) else { return nil } }
            guard text.skip("\"type\":"), let name = text.string() else { return nil }
            return forms[ContentHash(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[name]))]
        }
    }
}

extension PlainScanner {
    /// Reads a value that has one spelling; returns where it lies, a string without its quotes.
    fileprivate mutating func value(_ kind: PlainForm.Kind) -> Range<Int>? {
        switch kind {
        case .string: string()
        case .integer: integer(digitsMax: 20)
        // Up to 2^24, a Float has every whole number, and the encoder spells it without a fraction.
        case .number: integer(digitsMax: 7)
        case .boolean: boolean()
        }
    }
}
