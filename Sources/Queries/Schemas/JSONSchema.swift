package import StateJSON

/// Draft 7; any thread may use it, also several at once.
///
/// Source: Wright, Andrews, Hutton, "JSON Schema Validation", draft-handrews-json-schema-validation-01.
package final class JSONSchema: Sendable {
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package var pointer: JSONPointer
        package var detail: String

        package var description: String {
            pointer.tokens.isEmpty ? detail : "\(pointer): \(detail)"
        }
    }

    package let value: JSONValue
    let rules: SchemaRules
    package let unknownFormats: [String]

    /// O(n) in the size; refuses unknown keywords, patterns that RE2 does not take, and references that lead nowhere or
    /// back to themselves.
    package init(_ schema: JSONValue) throws(Fault) {
        let compiled = try SchemaCompiler(schema)
        (value, rules, unknownFormats) = (schema, compiled.rules, compiled.unknownFormats)
    }

    /// Empty where the value fits; the cost is that of the value, times that of the schema where it has choices, up to
    /// 1,000,000 + 16 n looks for n bytes; of a part that is as in `old`, which fits, the format does not matter.
    ///
    /// The caller passes JSON of at most a thousand levels.
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
