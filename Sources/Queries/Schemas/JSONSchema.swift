internal import CRE2
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

enum Keyword: String, CaseIterable {
    case format, type, const, `enum`, pattern, required, uniqueItems
    case maximum, minimum, exclusiveMaximum, exclusiveMinimum, multipleOf
    case maxItems, minItems, maxProperties, minProperties, maxLength, minLength
    case items, additionalItems, contains
    case properties, patternProperties, additionalProperties, propertyNames, dependencies
    case allOf, anyOf, oneOf, not, `if`, then, `else`
    // Later drafts have `$defs` and `deprecated`.
    case definitions, definitionsOfLaterDrafts = "$defs"
    // These say nothing that is checked.
    case comment = "$comment", title, description, `default`, examples, readOnly, writeOnly, contentEncoding
    case contentMediaType, deprecated

    static func hint(_ name: String, _ value: JSONValue) -> String {
        switch ExactText(name) {
        case "$id": return "; only the schema as a whole may have one, and references begin with #"
        case "dependentRequired", "dependentSchemas": return "; draft 7 calls it dependencies"
        case "prefixItems": return "; draft 7 has an array in items for it"
        default: break
        }
        let nearest = NearestNames.hint(name, among: allCases.map(\.rawValue))
        guard let member = member(of: value) else { return nearest }
        var properties = JSONObject()
        properties[name] = member
        let schema: JSONValue = ["type": "object", "properties": .object(properties)]
        let example = schema.text.count <= 200 ? ": \(String(decoding: schema.text, as: UTF8.self))" : ""
        let place = "members of an object stand below properties\(example)"
        return nearest.isEmpty ? "; \(place)" : "\(nearest) \(place.prefix(1).uppercased())\(place.dropFirst())"
    }

    private static func member(of value: JSONValue) -> JSONValue? {
        switch value {
        case .string(let type) where SchemaRules.Types(type) != nil: ["type": value]
        case .object(let object) where object["type"] != nil: value
        default: nil
        }
    }
}

package final class Pattern: Sendable {
    package struct Fault: Error {
        package var detail: String
        package var isTooLarge: Bool
    }

    let text: String
    /// unsafe: RE2 does not change an expression that it has compiled.
    nonisolated(unsafe) private let compiled: OpaquePointer

    /// In the syntax of RE2; `memoryMax` bytes bound the expression and its matches.
    package init(_ text: String, memoryMax: Int = 8 << 20) throws(Fault) {
        var reason = [CChar](repeating: 0, count: 256)
        var isTooLarge = false
        let made = text.withBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                storekeeper_pattern_make(
                    $0.baseAddress, $0.count, Int64(memoryMax), &isTooLarge, &reason, reason.count)
            }
        }
        guard let made else {
            let bytes = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw Fault(detail: String(decoding: bytes, as: UTF8.self), isTooLarge: isTooLarge)
        }
        (self.text, compiled) = (text, made)
    }

    deinit { storekeeper_pattern_free(compiled) }

    /// Instructions of RE2, of 16 bytes each.
    package var size: Int { Int(storekeeper_pattern_size(compiled)) }

    package func matches(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        text.withMemoryRebound(to: CChar.self) { storekeeper_pattern_matches(compiled, $0.baseAddress, $0.count) }
    }
}
