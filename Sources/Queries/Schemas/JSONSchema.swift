package import StateJSON

/// A JSON Schema, draft 7, by which values are checked.
///
/// Any thread may use it, also several at once.
///
/// Source: Wright, Andrews, Hutton, "JSON Schema Validation", draft-handrews-json-schema-validation-01.
package final class JSONSchema: Sendable {
    /// The fault of a schema.
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package var pointer: JSONPointer
        package var detail: String

        package var description: String {
            pointer.tokens.isEmpty ? detail : "\(pointer): \(detail)"
        }
    }

    /// The schema as it was given.
    package let value: JSONValue
    let rules: SchemaRules
    /// The formats that are not checked, each with its place in the schema.
    package let unknownFormats: [String]

    /// Compiles a schema; O(n) in its size.
    ///
    /// - Throws: ``Fault`` for a keyword that this server does not know, a pattern that RE2 does not take, a reference that leads
    ///   nowhere or back to itself, and a value that a keyword cannot have.
    package init(_ schema: JSONValue) throws(Fault) {
        let compiled = try SchemaCompiler(schema)
        (value, rules, unknownFormats) = (schema, compiled.rules, compiled.unknownFormats)
    }

    /// Why a value does not fit; empty where it does.
    ///
    /// The cost is that of the value, times that of the schema where it has choices. It has a bound: a value of n bytes that
    /// takes more than 1,000,000 + 16 n looks at a schema has that as its fault, and so has one that nests too deeply for it.
    ///
    /// - Parameters:
    ///   - json: UTF-8 JSON, at most a thousand levels deep.
    ///   - old: the value before it, which fits but for formats: where a part is as it was, its format does not matter.
    ///   - most: the most faults in the result.
    package func faults(of json: [UInt8], before old: (() -> [UInt8])? = nil, most: Int = 16) -> [JSONFault] {
        do throws(JSONFault) {
            let document = try JSONDocument(json, depthMax: 1000)
            func faults(checksFormats: Bool = true, most: Int) -> [JSONFault] {
                var check = SchemaCheck(
                    self, document, checksFormats: checksFormats, stepsMax: 1_000_000 + 16 * json.count)
                check.run(most: max(1, most))
                return check.faults
            }
            let found = faults(most: most)
            guard let old, !found.isEmpty, faults(checksFormats: false, most: 1).isEmpty else { return found }
            let new = try JSONValue(parsing: json, depthMax: 1000)
            let former = try JSONValue(parsing: old(), depthMax: 1000)
            let changed = faults(most: .max).filter { fault in
                new[pointer: fault.pointer].map { $0 != former[pointer: fault.pointer] } ?? true
            }
            return Array(changed.prefix(most))
        } catch {
            return [error]
        }
    }
}
