internal import CSchemas
package import StateJSON

/// A JSON Schema, draft 7, by which values are checked.
///
/// Any thread may use it, also several at once.
///
/// Source: Wright, Andrews, Hutton, "JSON Schema Validation", draft-handrews-json-schema-validation-01.
package final class JSONSchema: Sendable {
    /// What is wrong with a schema.
    package struct Fault: Error, Sendable, CustomStringConvertible {
        /// Where in the schema.
        package var pointer: JSONPointer
        package var detail: String

        package var description: String {
            pointer.tokens.isEmpty ? detail : "\(pointer): \(detail)"
        }
    }

    /// The schema as it was given.
    package let value: JSONValue
    private let compiled: Compiled

    /// Compiles a schema; O(n) in its size.
    ///
    /// - Throws: ``Fault`` for a keyword that this server does not know, a pattern that RE2 does not take, a reference that leads
    ///   nowhere or back to itself, and a value that a keyword cannot have.
    package init(_ schema: JSONValue) throws(Fault) {
        value = schema
        compiled = try Compiled(try SchemaWalk.prepared(schema))
    }

    /// Why a value does not fit; empty where it does.
    ///
    /// The cost is that of the value, times that of the schema where it has choices.
    ///
    /// - Parameters:
    ///   - json: UTF-8 JSON.
    ///   - most: how many faults are told.
    package func faults(of json: [UInt8], most: Int = 16) -> [JSONFault] {
        var found: [JSONFault] = []
        for (pointer, sentence) in compiled.faults(of: json, most: 4 * most) {
            guard let fault = told(pointer, sentence), !found.contains(fault), found.count < most else { continue }
            found.append(fault)
        }
        if found.isEmpty, !compiled.takes(json) {
            found.append(JSONFault(.mismatch, at: .root, "the value does not fit the schema"))
        }
        return found
    }

    /// A fault in words; nil for one that only says that something below does not fit.
    private func told(_ pointer: JSONPointer, _ sentence: String) -> JSONFault? {
        let followers = [
            "Failed to validate against schema associated with", "Failed to validate item #",
            "Failed to validate against additional properties schema",
        ]
        if followers.contains(where: sentence.hasPrefix) { return nil }
        if let name = Self.name(in: sentence, behind: "Missing required property '", before: "'.") {
            return JSONFault(.mismatch, at: pointer.appending(name), "is missing")
        }
        let unknown =
            "Object contains a property that could not be validated using 'properties' or 'additionalProperties' constraints: '"
        if let name = Self.name(in: sentence, behind: unknown, before: "'.") {
            return JSONFault(.mismatch, at: pointer.appending(name), "the schema has no such member")
        }
        if sentence.hasPrefix("Value type not permitted") {
            let expected = SchemaWalk.type(in: value, at: pointer.tokens[...]).map { "expected \($0)" }
            return JSONFault(.mismatch, at: pointer, expected ?? "the schema does not allow a value of this type")
        }
        let plain = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        return JSONFault(.mismatch, at: pointer, plain.prefix(1).lowercased() + plain.dropFirst())
    }

    private static func name(in sentence: String, behind start: String, before end: String) -> String? {
        guard sentence.hasPrefix(start), sentence.hasSuffix(end) else { return nil }
        return String(sentence.dropFirst(start.count).dropLast(end.count))
    }
}

/// The schema of the library.
private final class Compiled: Sendable {
    /// unsafe: the library does not change a schema that it has made.
    nonisolated(unsafe) private let schema: OpaquePointer

    init(_ prepared: JSONValue) throws(JSONSchema.Fault) {
        let faults = Faults()
        let text = prepared.text
        let made = text.withUnsafeBytes { bytes in
            storekeeper_schema_make(
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, faults.context, Faults.take)
        }
        guard let made else {
            throw JSONSchema.Fault(pointer: .root, detail: faults.found.first?.sentence ?? "the schema has a fault")
        }
        schema = made
    }

    deinit { storekeeper_schema_free(schema) }

    func takes(_ json: [UInt8]) -> Bool { check(json, most: 0, Faults()) == 0 }

    func faults(of json: [UInt8], most: Int) -> [(pointer: JSONPointer, sentence: String)] {
        let faults = Faults()
        _ = check(json, most: most, faults)
        return faults.found
    }

    private func check(_ json: [UInt8], most: Int, _ faults: Faults) -> Int {
        json.withUnsafeBytes { bytes in
            storekeeper_schema_check(
                schema, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, most, faults.context,
                Faults.take)
        }
    }

    /// Takes what the library says.
    private final class Faults {
        var found: [(pointer: JSONPointer, sentence: String)] = []

        var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

        static let take: storekeeper_schema_fault = { context, depth, names, lengths, sentence in
            guard let context, let sentence else { return }
            let tokens = (0..<depth).map { index in
                let bytes = UnsafeRawBufferPointer(start: names?[index], count: lengths?[index] ?? 0)
                return String(decoding: bytes, as: UTF8.self)
            }
            Unmanaged<Faults>.fromOpaque(context).takeUnretainedValue().found.append(
                (JSONPointer(tokens), String(cString: sentence)))
        }
    }
}

extension JSONSchema {
    /// Why RE2 does not take an expression; nil where it does.
    static func patternFault(_ pattern: String) -> String? {
        var pattern = pattern
        return pattern.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { bytes in
                guard let sentence = storekeeper_pattern_fault(bytes.baseAddress, bytes.count) else { return nil }
                defer { storekeeper_free(sentence) }
                return String(cString: sentence)
            }
        }
    }
}
