/// Typed values from JSON, and JSON from typed values.
package enum JSON {}

extension JSON {
    /// The treatment of fields that a type does not know.
    package enum UnknownFields {
        /// They are a fault, unlike in Foundation's decoder: to ignore them would lose data.
        case refused
        /// They belong to others, as in a JSON Web Key.
        case ignored
    }

    /// Decodes a value from a whole JSON text.
    ///
    /// - Throws: ``JSONFault`` with the pointer of the fault and what was expected there.
    package static func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, from bytes: [UInt8], depthMax: Int = 64,
        unknownFields: UnknownFields = .refused
    ) throws(JSONFault) -> Value {
        try JSONNode(JSONDocument(bytes, depthMax: depthMax)).decode(type, unknownFields: unknownFields)
    }
}

/// A value inside a parsed document.
package struct JSONNode {
    let document: JSONDocument
    let index: Int

    /// The outermost value of a document.
    package init(_ document: JSONDocument) {
        self.init(document, document.root)
    }

    init(_ document: JSONDocument, _ index: Int) {
        self.document = document
        self.index = index
    }

    /// The bytes of the whole document.
    package var textCount: Int { document.textCount }

    /// The pointer to this value; O(n) in the document.
    package var pointer: JSONPointer { document.pointer(to: index) }

    /// This value as a tree.
    package var value: JSONValue { JSONValue.value(of: document, at: index) }

    /// The content of a string; nil for another value.
    package var string: String? { utf8.map { String(decoding: $0, as: UTF8.self) } }

    /// The content of a string, valid as long as the document; nil for another value.
    package var utf8: UnsafeBufferPointer<UInt8>? {
        document.kind(index) == UInt8(ascii: "\"") ? document.utf8(index) : nil
    }

    /// The elements of an array; nil for another value.
    package var elements: [JSONNode]? {
        guard document.kind(index) == UInt8(ascii: "[") else { return nil }
        var found: [JSONNode] = []
        var element = document.firstChild(index)
        while !document.isEnd(element) {
            found.append(JSONNode(document, element))
            element = document.after(element)
        }
        return found
    }

    /// The members of an object in the order of the text; nil for another value.
    package var members: JSONMembers? {
        document.kind(index) == UInt8(ascii: "{") ? JSONMembers(document, index) : nil
    }

    /// This value as compact UTF-8 JSON.
    package var text: [UInt8] {
        var writer = JSONWriter()
        document.write(index, to: &writer)
        return writer.bytes
    }

    /// Decodes this value.
    ///
    /// - Throws: ``JSONFault`` with the pointer in the whole document and what was expected there.
    package func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, unknownFields: JSON.UnknownFields = .refused
    ) throws(JSONFault) -> Value {
        let session = JSONDecodingSession(document, index)
        let decoder = JSONValueDecoder(session: session, index: index)
        let value: Value
        do {
            value = try decoder.decode(type)
        } catch let fault as JSONFault {
            throw fault
        } catch let error as DecodingError {
            throw JSONFault(error)
        } catch {
            throw JSONFault(.mismatch, at: pointer, "\(error)")
        }
        if unknownFields == .ignored { return value }
        session.endNotes()
        if !session.unknownFields.isEmpty, let unknown = session.unknownFields.values.joined().min() {
            let object = session.unknownFields.first { $1.contains(unknown) }?.key ?? index
            throw JSONFault(
                .mismatch, at: document.pointer(to: unknown),
                "there is no such field; the known fields are \(fieldNames(of: object, in: type).joined(separator: ", "))"
            )
        }
        if !session.isRead, let key = members?.first(where: { _ in true })?.key {
            throw JSONFault(.mismatch, at: pointer.appending(key), "there is no such field: no field is expected here")
        }
        return value
    }

    /// The fields that a type asks an object for.
    ///
    /// It decodes the value once more; only faults need it.
    private func fieldNames<Value: Decodable>(of object: Int, in type: Value.Type) -> [String] {
        let session = JSONDecodingSession(document, index)
        session.asked = (object, [])
        // The value has decoded before, so an error cannot come; only the notes matter.
        _ = try? JSONValueDecoder(session: session, index: index).decode(type)
        return session.asked?.fields ?? []
    }
}

/// The members of an object in the order of the text; the iterator reads one at a time.
package struct JSONMembers: Sequence {
    private let document: JSONDocument
    private let object: Int

    fileprivate init(_ document: JSONDocument, _ object: Int) {
        self.document = document
        self.object = object
    }

    /// Whether the object has no members.
    package var isEmpty: Bool { document.isEnd(document.firstChild(object)) }

    /// Returns an iterator at the first member.
    package func makeIterator() -> Iterator { Iterator(document: document, key: document.firstChild(object)) }

    /// The first member, whose key can be compared without a string of it; nil for none.
    package var first: JSONMember? { JSONMember(document, document.firstChild(object)) }

    /// An iterator over the members.
    package struct Iterator: IteratorProtocol {
        fileprivate let document: JSONDocument
        fileprivate var key: Int

        /// The next member, or nil at the end.
        package mutating func next() -> (key: String, value: JSONNode)? {
            guard !document.isEnd(key) else { return nil }
            defer { key = document.after(key + 1) }
            return (document.string(key), JSONNode(document, key + 1))
        }
    }
}

/// A member of an object.
package struct JSONMember {
    private let document: JSONDocument
    private let index: Int

    fileprivate init?(_ document: JSONDocument, _ index: Int) {
        if document.isEnd(index) { return nil }
        (self.document, self.index) = (document, index)
    }

    /// The key without escapes, valid as long as the document.
    package var key: UnsafeBufferPointer<UInt8> { document.utf8(index) }
    /// The value.
    package var value: JSONNode { JSONNode(document, index + 1) }
    /// The member behind this one; nil for none.
    package var next: JSONMember? { JSONMember(document, document.after(index + 1)) }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether a text has these bytes.
    @inline(__always)
    package static func ~= (name: StaticString, text: UnsafeBufferPointer<UInt8>) -> Bool {
        text.hasBytes(of: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
}

extension JSONFault {
    /// The fault for an error that a type's own `init(from:)` has thrown.
    package init(_ error: DecodingError) {
        let (context, detail): (DecodingError.Context, String) =
            switch error {
            case .typeMismatch(let type, let context): (context, "expected \(expectation(of: type))")
            case .valueNotFound(let type, let context): (context, "expected \(expectation(of: type)), found null")
            case .keyNotFound(let key, let context): (context, "\"\(key.stringValue)\" is missing")
            case .dataCorrupted(let context):
                (
                    context,
                    // The standard library's sentence about an enum quotes the value; a type's own sentence stays.
                    context.debugDescription.hasPrefix("Cannot initialize")
                        ? "is not one of the values that are taken here" : context.debugDescription
                )
            @unknown default: (.init(codingPath: [], debugDescription: ""), "\(error)")
            }
        let tokens = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
        self.init(.mismatch, at: JSONPointer(tokens), detail)
    }
}

/// The JSON form of a type, as the object of a sentence that begins with "expected".
func expectation(of type: Any.Type) -> String {
    switch type {
    case is String.Type: "a string"
    case is Bool.Type: "true or false"
    case is any FixedWidthInteger.Type: "a whole number"
    case is any BinaryFloatingPoint.Type: "a number"
    case is any JSONArrayShaped.Type: "an array"
    default:
        // The name of a Swift type says nothing to a client.
        FoundationValue(type)?.expectation ?? caseNames(of: type).map { "one of \($0.joined(separator: ", "))" }
            ?? rawType(of: type).map(expectation) ?? "a value"
    }
}

/// The type of the raw values of a type, or nil for a type without them.
private func rawType(of type: Any.Type) -> Any.Type? {
    func rawType<Raw: RawRepresentable>(_ type: Raw.Type) -> Any.Type { Raw.RawValue.self }
    return (type as? any RawRepresentable.Type).map { rawType($0) }
}

/// The raw values of an enum that lists its cases, or nil for any other type.
func caseNames(of type: Any.Type) -> [String]? {
    func names<Cases: CaseIterable>(_ type: Cases.Type) -> [String]? {
        let names = type.allCases.compactMap { ($0 as? any RawRepresentable).map { "\($0.rawValue)" } }
        return names.isEmpty ? nil : names
    }
    return (type as? any CaseIterable.Type).flatMap { names($0) }
}

private protocol JSONArrayShaped {}
extension Array: JSONArrayShaped {}
extension Set: JSONArrayShaped {}

/// The notes of one call to decode: which fields the type asks for, and which keys it does not know.
final class JSONDecodingSession {
    // exclusivity unchecked: one call to decode uses the variables, and a check takes as long as ten accesses.

    let document: JSONDocument
    /// For each object, the keys that no container so far knows.
    ///
    /// A type can read one object through several containers.
    @exclusivity(unchecked) var unknownFields: [Int: Set<Int>] = [:]
    /// Whether the type has asked for anything; a type without fields does not.
    @exclusivity(unchecked) var isRead = false
    /// The object whose fields are noted, and the fields that the type has asked it for; nil outside a fault.
    @exclusivity(unchecked) var asked: (object: Int, fields: [String])?

    let outermost: Int
    /// Where a container looks for the next member of that value, where it is an object.
    @exclusivity(unchecked) private(set) var hint: Int
    /// The first member of that value for which the type has not asked, where it asks in their order.
    @exclusivity(unchecked) private var passed: Int
    /// Whether the type has asked for that value, and its type of coding keys if it is the only one.
    @exclusivity(unchecked) private var isNoted = false
    @exclusivity(unchecked) private var keys: (any CodingKey.Type)?

    init(_ document: JSONDocument, _ outermost: Int) {
        self.document = document
        self.outermost = outermost
        hint = document.firstChild(outermost)
        passed = hint
    }

    /// Finds a member of the outermost value.
    func member(_ name: String) -> Int? {
        guard let found = document.member(name, of: outermost, hint: &hint) else { return nil }
        if found == passed + 1 { passed = document.after(found) }
        return found
    }

    /// Notes the keys of an object that a type of coding keys does not know.
    ///
    /// Of the outermost one it does so at the end: nearly always the type has asked for each member by then, in their order.
    func note(_ object: Int, _ keys: any CodingKey.Type) {
        isRead = true
        if object == outermost {
            guard isNoted else { return (isNoted, self.keys) = (true, keys) }
            if let first = self.keys.take() { noteNow(object, first) }
        }
        noteNow(object, keys)
    }

    func endNotes() {
        if let keys, !document.isEnd(passed) { noteNow(outermost, keys) }
    }

    private func noteNow<Key: CodingKey>(_ object: Int, _ keys: Key.Type) {
        var unknown: Set<Int> = []
        var key = document.firstChild(object)
        while !document.isEnd(key) {
            if Key(stringValue: document.string(key)) == nil { unknown.insert(key) }
            key = document.after(key + 1)
        }
        guard !unknown.isEmpty || unknownFields[object] != nil else { return }
        unknownFields[object] = unknownFields[object].map { $0.intersection(unknown) } ?? unknown
    }
}
