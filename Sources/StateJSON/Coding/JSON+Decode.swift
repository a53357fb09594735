package enum JSON {}

extension JSON {
    /// Unknown fields are a fault, unlike in Foundation's decoder: to ignore them, as in a JSON Web Key, loses data.
    package static func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, from bytes: [UInt8], depthMax: Int = 64,
        ignoresUnknown: Bool = false
    ) throws(JSONFault) -> Value {
        try JSONNode(JSONDocument(bytes, depthMax: depthMax)).decode(type, ignoresUnknown: ignoresUnknown)
    }
}

package struct JSONNode {
    package let document: JSONDocument
    package let index: Int

    @inlinable package init(_ document: JSONDocument, _ index: Int) { (self.document, self.index) = (document, index) }

    package init(_ document: JSONDocument) { self.init(document, document.root) }

    package var textCount: Int { document.textCount }

    /// O(n) in the document.
    package var pointer: JSONPointer { document.pointer(to: index) }

    package var value: JSONValue { JSONValue.value(of: document, at: index) }

    @inlinable package var isObject: Bool { document.kind(index) == UInt8(ascii: "{") }
    @inlinable package var isArray: Bool { document.kind(index) == UInt8(ascii: "[") }
    @inlinable package var isString: Bool { document.kind(index) == UInt8(ascii: "\"") }
    @inlinable package var isEmpty: Bool { document.isEnd(document.firstChild(index)) }

    package var string: String? { isString ? document.string(index) : nil }

    /// Valid as long as the document; nil unless it is a string.
    @inlinable package var utf8: UnsafeBufferPointer<UInt8>? { isString ? document.utf8(index) : nil }

    package var elements: [JSONNode]? {
        isArray ? document.children(of: index).map { JSONNode(document, $0) } : nil
    }

    /// Read one at a time, in the order of the text; nil for another value.
    package var members: UnfoldSequence<(key: String, value: JSONNode), Int>? {
        guard isObject else { return nil }
        return sequence(state: document.firstChild(index)) { [document] key in
            guard !document.isEnd(key) else { return nil }
            defer { key = document.after(key + 1) }
            return (document.string(key), JSONNode(document, key + 1))
        }
    }

    package var text: [UInt8] {
        var writer = JSONWriter()
        document.write(index, to: &writer)
        return writer.bytes
    }

    package func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, ignoresUnknown: Bool = false
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
        if ignoresUnknown { return value }
        session.endNotes()
        if !session.unknownFields.isEmpty, let unknown = session.unknownFields.values.joined().min() {
            let object = session.unknownFields.first { $1.contains(unknown) }?.key ?? index
            throw JSONFault(
                .mismatch, at: document.pointer(to: unknown),
                "there is no such field; the known fields are \(fieldNames(of: object, in: type).joined(separator: ", "))"
            )
        }
        if !session.isRead, isObject, !isEmpty {
            let key = document.pointer(to: document.firstChild(index))
            throw JSONFault(.mismatch, at: key, "there is no such field: no field is expected here")
        }
        return value
    }

    /// The value is decoded once more; only faults need it.
    private func fieldNames<Value: Decodable>(of object: Int, in type: Value.Type) -> [String] {
        let session = JSONDecodingSession(document, index)
        session.asked = (object, [])
        // The value has decoded before, so an error cannot come; only the notes matter.
        _ = try? JSONValueDecoder(session: session, index: index).decode(type)
        return session.asked?.fields ?? []
    }
}

extension JSONFault {
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

private func rawType(of type: Any.Type) -> Any.Type? {
    func rawType<Raw: RawRepresentable>(_ type: Raw.Type) -> Any.Type { Raw.RawValue.self }
    return (type as? any RawRepresentable.Type).map { rawType($0) }
}

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
    /// The keys that no container so far knows: a type can read one object through several containers.
    @exclusivity(unchecked) var unknownFields: [Int: Set<Int>] = [:]
    /// Whether the type has asked for anything; a type without fields does not.
    @exclusivity(unchecked) var isRead = false
    /// Nil outside a fault.
    @exclusivity(unchecked) var asked: (object: Int, fields: [String])?

    let outermost: Int
    @exclusivity(unchecked) private var hint: Int
    /// The first member of the outermost value for which the type has not asked, where it asks in their order.
    @exclusivity(unchecked) private var passed: Int
    @exclusivity(unchecked) private var isNoted = false
    @exclusivity(unchecked) private var keys: (any CodingKey.Type)?

    init(_ document: JSONDocument, _ outermost: Int) {
        (self.document, self.outermost) = (document, outermost)
        hint = document.firstChild(outermost)
        passed = hint
    }

    /// The hint is no part of the generic container: Swift would look up the metadata of its type for each object.
    final class Hint {
        // Only one access at a time lends it, to a search that calls no other code.
        fileprivate var index: Int

        init(_ index: Int) { self.index = index }
    }

    /// The hint is nil for the outermost object, whose hint the session has.
    func member(_ name: String, of object: Int, _ hint: Hint?) -> JSONValueDecoder? {
        if let asked, asked.object == object, !asked.fields.contains(name) { self.asked?.fields.append(name) }
        let document = document
        let found =
            if let hint {
                name.withBytes { document.member($0, of: object, hint: &hint.index) }
            } else {
                name.withBytes { document.member($0, of: object, hint: &self.hint) }
            }
        guard let found else { return nil }
        if found == passed + 1 { passed = document.after(found) }
        return JSONValueDecoder(session: self, index: found)
    }

    /// The keys of the outermost object wait for the end: nearly always the type has asked for each in order by then.
    func note(_ object: Int, _ keys: any CodingKey.Type) {
        isRead = true
        if object == outermost {
            guard isNoted else { return (isNoted, self.keys) = (true, keys) }
            if let first = self.keys.take() { noteNow(object, first) }
        }
        noteNow(object, keys)
    }

    func endNotes() { if let keys, !document.isEnd(passed) { noteNow(outermost, keys) } }

    private func noteNow<Key: CodingKey>(_ object: Int, _ keys: Key.Type) {
        var unknown: Set<Int> = []
        for value in document.children(of: object) where Key(stringValue: document.string(value - 1)) == nil {
            unknown.insert(value - 1)
        }
        guard !unknown.isEmpty || unknownFields[object] != nil else { return }
        unknownFields[object] = unknownFields[object].map { $0.intersection(unknown) } ?? unknown
    }
}
