internal import CSchemas
internal import StateJSON

/// Looks at every keyword of a schema before the library gets it.
struct SchemaWalk {
    /// What a keyword of draft 7 has for its value.
    private enum Keyword {
        /// Says nothing that is checked.
        case annotation
        /// A value that has no schema inside.
        case plain
        case pattern
        case schema
        /// A schema for the same value as its own schema.
        case schemaInPlace
        /// An array of such.
        case schemasInPlace
        /// A schema for each element, or an array of one for each position.
        case items
        /// An object of schemas for members.
        case members
        /// An object of schemas for the same value, or arrays of names.
        case dependencies
        /// An object of schemas that are only named.
        case definitions
    }

    private static let keywords: [ExactText: Keyword] = {
        let named: [(Keyword, [String])] = [
            (
                .annotation,
                [
                    "$comment", "title", "description", "default", "examples", "readOnly", "writeOnly", "format",
                    "contentEncoding", "contentMediaType",
                ]
            ),
            (
                .plain,
                [
                    "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
                    "maxLength", "minLength", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties",
                    "required",
                ]
            ),
            (.pattern, ["pattern"]),
            (.schema, ["additionalItems", "contains", "additionalProperties", "propertyNames"]),
            (.schemaInPlace, ["not", "if", "then", "else"]),
            (.schemasInPlace, ["allOf", "anyOf", "oneOf"]),
            (.items, ["items"]),
            (.members, ["properties"]),
            (.dependencies, ["dependencies"]),
            (.definitions, ["definitions"]),
        ]
        return Dictionary(
            uniqueKeysWithValues: named.flatMap { keyword, names in names.map { (ExactText($0), keyword) } })
    }()

    /// The keywords that draft 7 has and this server refuses, with what to do instead.
    private static let refused: [ExactText: String] = [
        ExactText("patternProperties"): "name the members in properties, or give additionalProperties a schema",
        ExactText("$id"): "only the schema as a whole may have one, and references begin with #",
        ExactText("$defs"): "draft 7 calls it definitions",
    ]

    private static let depthMax = 64

    private let root: JSONValue
    /// The schemas that look at the same value as the one at a pointer.
    private var sameValue: [JSONPointer: [JSONPointer]] = [:]

    /// The schema as the library gets it: without annotations, and with patterns for RE2.
    static func prepared(_ schema: JSONValue) throws(JSONSchema.Fault) -> JSONValue {
        var walk = SchemaWalk(root: schema)
        var whole = schema
        if case .object(var object) = schema {
            if let draft = object["$schema"] {
                guard case .string(let text) = draft, text.contains("json-schema.org/draft-07/schema") else {
                    throw JSONSchema.Fault(pointer: JSONPointer(["$schema"]), detail: "this server knows draft 7 only")
                }
            }
            object["$schema"] = nil
            object["$id"] = nil
            whole = .object(object)
        }
        let prepared = try walk.schema(whole, at: .root, depth: 0)
        try walk.refuseCycles()
        return prepared
    }

    private init(root: JSONValue) { self.root = root }

    private mutating func schema(
        _ value: JSONValue, at place: JSONPointer, depth: Int
    ) throws(JSONSchema.Fault) -> JSONValue {
        guard depth <= Self.depthMax else {
            throw JSONSchema.Fault(pointer: place, detail: "a schema has at most \(Self.depthMax) levels")
        }
        if case .bool = value { return value }
        guard case .object(let object) = value else {
            throw JSONSchema.Fault(pointer: place, detail: "expected a schema: an object, true or false")
        }
        var made = JSONObject()
        if let reference = object["$ref"] {
            // What stands beside a reference says nothing (draft-handrews-json-schema-01, 8.3), but references may lead there.
            let target = try target(of: reference, at: place.appending("$ref"))
            sameValue[place, default: []].append(target)
            made["$ref"] = reference
        }
        for (name, inner) in object.members where name != "$ref" {
            let at = place.appending(name)
            guard let keyword = Self.keywords[ExactText(name)] else {
                let hint = Self.refused[ExactText(name)].map { "; \($0)" } ?? ""
                throw JSONSchema.Fault(pointer: at, detail: "this server does not know the keyword\(hint)")
            }
            switch keyword {
            case .annotation: break
            case .plain: made[name] = inner
            case .pattern:
                guard case .string(let pattern) = inner else {
                    throw JSONSchema.Fault(pointer: at, detail: "expected a text")
                }
                if let fault = JSONSchema.patternFault(pattern) {
                    throw JSONSchema.Fault(pointer: at, detail: "RE2 does not take the pattern: \(fault)")
                }
                made[STOREKEEPER_SCHEMA_PATTERN] = inner
            case .schema: made[name] = try schema(inner, at: at, depth: depth + 1)
            case .schemaInPlace:
                sameValue[place, default: []].append(at)
                made[name] = try schema(inner, at: at, depth: depth + 1)
            case .schemasInPlace: made[name] = try schemas(inner, at: at, inPlaceOf: place, depth: depth)
            case .items:
                if case .array = inner {
                    made[name] = try schemas(inner, at: at, inPlaceOf: nil, depth: depth)
                } else {
                    made[name] = try schema(inner, at: at, depth: depth + 1)
                }
            case .members, .definitions: made[name] = try members(inner, at: at, inPlaceOf: nil, depth: depth)
            case .dependencies: made[name] = try members(inner, at: at, inPlaceOf: place, depth: depth)
            }
        }
        return .object(made)
    }

    private mutating func schemas(
        _ value: JSONValue, at place: JSONPointer, inPlaceOf outer: JSONPointer?, depth: Int
    ) throws(JSONSchema.Fault) -> JSONValue {
        guard case .array(let elements) = value, !elements.isEmpty else {
            throw JSONSchema.Fault(pointer: place, detail: "expected an array of schemas")
        }
        var made: [JSONValue] = []
        for (index, element) in elements.enumerated() {
            let at = place.appending(String(index))
            if let outer { sameValue[outer, default: []].append(at) }
            made.append(try schema(element, at: at, depth: depth + 1))
        }
        return .array(made)
    }

    private mutating func members(
        _ value: JSONValue, at place: JSONPointer, inPlaceOf outer: JSONPointer?, depth: Int
    ) throws(JSONSchema.Fault) -> JSONValue {
        guard case .object(let object) = value else {
            throw JSONSchema.Fault(pointer: place, detail: "expected an object of schemas")
        }
        var made = JSONObject()
        for (name, inner) in object.members {
            let at = place.appending(name)
            if outer != nil, case .array(let names) = inner {
                guard names.allSatisfy({ if case .string = $0 { true } else { false } }) else {
                    throw JSONSchema.Fault(pointer: at, detail: "expected the names of members, or a schema")
                }
                made[name] = inner
                continue
            }
            if let outer { sameValue[outer, default: []].append(at) }
            made[name] = try schema(inner, at: at, depth: depth + 1)
        }
        return .object(made)
    }

    /// The place in the schema that a reference names.
    private func target(of reference: JSONValue, at place: JSONPointer) throws(JSONSchema.Fault) -> JSONPointer {
        guard case .string(let text) = reference, let target = Self.pointer(in: text), root[pointer: target] != nil
        else {
            throw JSONSchema.Fault(
                pointer: place, detail: "expected # and a JSON Pointer to a part of this schema; no other is fetched")
        }
        return target
    }

    /// The JSON Pointer of a reference within its document.
    private static func pointer(in reference: String) -> JSONPointer? {
        // What needs an escape in a URI has none here: valijson reads the reference by itself.
        guard reference.hasPrefix("#"), !reference.contains("%") else { return nil }
        return JSONPointer(text: String(reference.dropFirst()))
    }

    /// Refuses schemas that come back to themselves without looking at a part of the value: they have no end.
    private func refuseCycles() throws(JSONSchema.Fault) {
        var known: Set<JSONPointer> = []
        for start in sameValue.keys.sorted(by: { $0.description < $1.description }) where !known.contains(start) {
            var path: [(place: JSONPointer, rest: ArraySlice<JSONPointer>)] = [(start, (sameValue[start] ?? [])[...])]
            var onPath: Set<JSONPointer> = [start]
            while let last = path.indices.last {
                guard let next = path[last].rest.popFirst() else {
                    known.insert(path[last].place)
                    onPath.remove(path.removeLast().place)
                    continue
                }
                guard !onPath.contains(next) else {
                    throw JSONSchema.Fault(
                        pointer: path[last].place, detail: "the schema refers to itself for the same value")
                }
                if known.contains(next) { continue }
                onPath.insert(next)
                path.append((next, (sameValue[next] ?? [])[...]))
            }
        }
    }

    /// What a schema says of the type at a place in the value, where its members and items lead there.
    static func type(in root: JSONValue, at tokens: ArraySlice<String>) -> String? {
        var (schema, rest, followed) = (root, tokens, 0)
        while true {
            guard case .object(let object) = schema else { return nil }
            if case .string(let reference)? = object["$ref"], followed < 32 {
                guard let target = pointer(in: reference).flatMap({ root[pointer: $0] }) else { return nil }
                (schema, followed) = (target, followed + 1)
                continue
            }
            guard let token = rest.popFirst() else { return names(of: object["type"]) }
            if case .object(let members)? = object["properties"], let inner = members[token] {
                schema = inner
            } else if JSONPointer.index(token) != nil, case .object? = object["items"], let inner = object["items"] {
                schema = inner
            } else if case .object? = object["additionalProperties"], let inner = object["additionalProperties"] {
                schema = inner
            } else {
                return nil
            }
        }
    }

    private static func names(of type: JSONValue?) -> String? {
        let types: [JSONValue] =
            switch type {
            case .array(let types)?: types
            case let type?: [type]
            case nil: []
            }
        let names = types.compactMap { if case .string(let name) = $0 { name } else { nil } }
        return names.isEmpty ? nil : names.joined(separator: " or ")
    }
}
