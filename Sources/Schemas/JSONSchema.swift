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
    /// unsafe: the library does not change a schema that it has made.
    nonisolated(unsafe) private let compiled: OpaquePointer

    /// Compiles a schema; O(n) in its size.
    ///
    /// - Throws: ``Fault`` for a keyword that this server does not know, a pattern that RE2 does not take, a reference that leads
    ///   nowhere or back to itself, and a value that a keyword cannot have.
    package init(_ schema: JSONValue) throws(Fault) {
        value = schema
        let text = try SchemaWalk.prepared(schema).text
        let faults = Faults()
        let made = text.withUnsafeBytes { bytes in
            storekeeper_schema_make(
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, faults.context, Faults.take)
        }
        guard let made else {
            throw Fault(pointer: .root, detail: faults.found.first?.detail ?? "the schema has a fault")
        }
        compiled = made
    }

    deinit { storekeeper_schema_free(compiled) }

    /// Why a value does not fit; empty where it does.
    ///
    /// The cost is that of the value, times that of the schema where it has choices. It has a bound: a value of n bytes that
    /// takes more than 1,000,000 + 16 n looks at a schema has that as its fault, and so has one that nests too deeply for it.
    ///
    /// - Parameters:
    ///   - json: UTF-8 JSON.
    ///   - most: the most faults in the result.
    package func faults(of json: [UInt8], most: Int = 16) -> [JSONFault] {
        let faults = Faults()
        _ = json.withUnsafeBytes { bytes in
            storekeeper_schema_check(
                compiled, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, most, faults.context,
                Faults.take)
        }
        return faults.found
    }

    /// Takes what the library says.
    private final class Faults {
        var found: [JSONFault] = []

        var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

        static let take: storekeeper_schema_fault = { context, depth, names, lengths, sentence in
            guard let context, let sentence else { return }
            let tokens = (0..<depth).map { index in
                let bytes = UnsafeRawBufferPointer(start: names?[index], count: lengths?[index] ?? 0)
                return String(decoding: bytes, as: UTF8.self)
            }
            Unmanaged<Faults>.fromOpaque(context).takeUnretainedValue().found.append(
                JSONFault(.mismatch, at: JSONPointer(tokens), String(cString: sentence)))
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
