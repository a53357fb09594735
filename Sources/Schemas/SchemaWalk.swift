internal import StateJSON

/// Looks at every keyword of a schema before the library gets it, and gives each schema inside a number.
///
/// The library gets one schema after the other. Those inside are `{"@at": number}`, and so are references, so that it follows
/// none. What it would check in a way of its own has the number of a value or a pattern: `{"@maximum": number}`.
struct SchemaWalk {
    private static let countMax = 10_000

    private let root: JSONValue
    /// The schemas that were found, by number; the first one is the whole.
    private var found: [(place: JSONPointer, value: JSONValue)] = []
    private var numbers: [JSONPointer: Int] = [:]
    /// The schemas that look at the same value as the one with this number.
    private var sameValue: [[Int]] = []
    private var values: [JSONValue] = []
    private var patterns: [JSONValue] = []

    /// The schema as the library gets it.
    static func prepared(_ schema: JSONValue) throws(JSONSchema.Fault) -> JSONValue {
        var walk = SchemaWalk(root: schema)
        _ = try walk.number(of: schema, at: .root)
        var schemas: [JSONValue] = []
        // Not by recursion: a chain of references is as long as the schema.
        while schemas.count < walk.found.count {
            schemas.append(try walk.schema(schemas.count))
        }
        try walk.refuseCycles()
        var prepared = JSONObject()
        prepared["schemas"] = .array(schemas)
        prepared["values"] = .array(walk.values)
        prepared["patterns"] = .array(walk.patterns)
        return .object(prepared)
    }

    private init(root: JSONValue) { self.root = root }

    private mutating func number(of value: JSONValue, at place: JSONPointer) throws(JSONSchema.Fault) -> Int {
        if let number = numbers[place] { return number }
        guard found.count < Self.countMax else {
            throw JSONSchema.Fault(pointer: place, detail: "a schema has at most \(Self.countMax) schemas inside")
        }
        numbers[place] = found.count
        found.append((place, value))
        sameValue.append([])
        return found.count - 1
    }

    /// What stands for a schema in another one.
    private mutating func inner(
        _ value: JSONValue, at place: JSONPointer, inPlaceOf outer: Int? = nil
    ) throws(JSONSchema.Fault) -> JSONValue {
        if case .bool = value { return value }
        let number = try number(of: value, at: place)
        if let outer { sameValue[outer].append(number) }
        return Self.at(number)
    }

    private static func at(_ number: Int) -> JSONValue {
        var reference = JSONObject()
        reference["@at"] = .integer(Int64(number))
        return .object(reference)
    }

    private mutating func schema(_ number: Int) throws(JSONSchema.Fault) -> JSONValue {
        let (place, value) = found[number]
        if case .bool = value { return value }
        guard case .object(let object) = value else {
            throw JSONSchema.Fault(pointer: place, detail: "expected a schema: an object, true or false")
        }
        var made = JSONObject()
        for (name, value) in object.members where name != "$ref" {
            if place == .root, try isOfTheWhole(name, value) { continue }
            try add(name, value, at: place.appending(name), of: number, to: &made)
        }
        // What stands beside a reference says nothing (draft-handrews-json-schema-01, 8.3), but references may lead there.
        guard let reference = object["$ref"] else { return .object(made) }
        let target = try target(of: reference, at: place.appending("$ref"))
        let numbered = try self.number(of: target.value, at: target.place)
        sameValue[number] = [numbered]
        return Self.at(numbered)
    }

    /// Whether a keyword is one that only a whole schema has.
    private func isOfTheWhole(_ name: String, _ value: JSONValue) throws(JSONSchema.Fault) -> Bool {
        guard name == "$schema" else { return name == "$id" }
        // Draft 7 takes whatever draft 6 takes.
        guard case .string(let text) = value,
            ["draft-06", "draft-07"].contains(where: { text.contains("json-schema.org/\($0)/schema") })
        else {
            throw JSONSchema.Fault(
                pointer: JSONPointer([name]), detail: "this server knows draft 7, and draft 6 as a part of it")
        }
        return true
    }

    private mutating func add(
        _ name: String, _ value: JSONValue, at place: JSONPointer, of number: Int, to made: inout JSONObject
    ) throws(JSONSchema.Fault) {
        guard let keyword = Keyword.named(name) else {
            let detail = "this server does not know the keyword\(Keyword.hint(name, value))"
            throw JSONSchema.Fault(pointer: place, detail: detail)
        }
        switch keyword {
        case .annotation: break
        case .type: made[name] = try Self.type(value, at: place)
        case .count: made[name] = .integer(try Self.count(value, at: place))
        case .limit, .divisor: made["@" + name] = add(try Self.number(value, keyword, at: place))
        case .value: made["@" + name] = add(value)
        case .values:
            guard case .array = value else { throw Self.expected("an array of values", at: place) }
            made["@" + name] = add(value)
        case .flag:
            guard case .bool(let isSet) = value else { throw Self.expected("true or false", at: place) }
            if isSet { made[name] = value }
        case .names: made[name] = try Self.names(value, at: place)
        case .pattern:
            guard case .string(let pattern) = value else { throw Self.expected("a text", at: place) }
            made["@" + name] = .integer(try add(pattern: pattern, at: place))
        case .schema: made[name] = try inner(value, at: place)
        case .schemaInPlace: made[name] = try inner(value, at: place, inPlaceOf: number)
        case .schemasInPlace: made[name] = try schemas(value, at: place, inPlaceOf: number)
        case .items:
            if case .array = value {
                made[name] = try schemas(value, at: place, inPlaceOf: nil)
            } else {
                made[name] = try inner(value, at: place)
            }
        case .members, .patternMembers, .dependencies:
            made[name] = try members(value, keyword, at: place, of: number)
        case .definitions: _ = try members(value, keyword, at: place, of: number)
        }
    }

    private mutating func schemas(
        _ value: JSONValue, at place: JSONPointer, inPlaceOf outer: Int?
    ) throws(JSONSchema.Fault) -> JSONValue {
        guard case .array(let elements) = value, !elements.isEmpty else {
            throw Self.expected("an array of schemas", at: place)
        }
        var made: [JSONValue] = []
        for (index, element) in elements.enumerated() {
            made.append(try inner(element, at: place.appending(String(index)), inPlaceOf: outer))
        }
        return .array(made)
    }

    private mutating func members(
        _ value: JSONValue, _ keyword: Keyword, at place: JSONPointer, of number: Int
    ) throws(JSONSchema.Fault) -> JSONValue {
        guard case .object(let object) = value else { throw Self.expected("an object of schemas", at: place) }
        var made = JSONObject()
        for (name, value) in object.members {
            let at = place.appending(name)
            switch (keyword, value) {
            case (.patternMembers, _):
                made[String(try add(pattern: name, at: at))] = try inner(value, at: at)
            case (.dependencies, .array):
                try Self.refuseZero(in: name, at: at)
                made[name] = try Self.names(value, at: at)
            case (.dependencies, _):
                try Self.refuseZero(in: name, at: at)
                made[name] = try inner(value, at: at, inPlaceOf: number)
            case (.definitions, _): _ = try inner(value, at: at)
            default:
                try Self.refuseZero(in: name, at: at)
                made[name] = try inner(value, at: at)
            }
        }
        return .object(made)
    }

    private mutating func add(_ value: JSONValue) -> JSONValue {
        values.append(value)
        return .integer(Int64(values.count - 1))
    }

    private mutating func add(pattern: String, at place: JSONPointer) throws(JSONSchema.Fault) -> Int64 {
        if let fault = JSONSchema.patternFault(pattern) {
            throw JSONSchema.Fault(pointer: place, detail: "RE2 does not take the pattern: \(fault)")
        }
        patterns.append(.string(pattern))
        return Int64(patterns.count - 1)
    }
}

/// The values of keywords that have no schema inside.
extension SchemaWalk {
    private static func expected(_ what: String, at place: JSONPointer) -> JSONSchema.Fault {
        JSONSchema.Fault(pointer: place, detail: "expected \(what)")
    }

    private static func type(_ value: JSONValue, at place: JSONPointer) throws(JSONSchema.Fault) -> JSONValue {
        let types = if case .array(let types) = value { types } else { [value] }
        for type in types {
            guard case .string(let name) = type, Keyword.types.contains(ExactText(name)) else {
                throw expected(
                    "one or more of " + Keyword.types.map(\.text).sorted().joined(separator: ", "), at: place)
            }
        }
        return value
    }

    private static func count(_ value: JSONValue, at place: JSONPointer) throws(JSONSchema.Fault) -> Int64 {
        let count: Int64? =
            switch value {
            case .integer(let count): count
            case .double(let count): Int64(exactly: count)
            default: nil
            }
        guard let count, count >= 0 else { throw expected("a whole number of at least 0", at: place) }
        return count
    }

    private static func number(
        _ value: JSONValue, _ keyword: Keyword, at place: JSONPointer
    ) throws(JSONSchema.Fault) -> JSONValue {
        switch value {
        case .integer(let number) where keyword == .limit || number > 0: return value
        case .double(let number) where keyword == .limit || number > 0: return value
        case .unsigned: return value
        case .decimal: throw expected("a number of 64 bits", at: place)
        default: throw expected(keyword == .limit ? "a number" : "a number above 0", at: place)
        }
    }

    private static func names(_ value: JSONValue, at place: JSONPointer) throws(JSONSchema.Fault) -> JSONValue {
        guard case .array(let names) = value else { throw expected("an array of names", at: place) }
        for name in names {
            guard case .string(let text) = name else { throw expected("an array of names", at: place) }
            try refuseZero(in: text, at: place)
        }
        return value
    }

    /// The library ends a name there, and would check another one.
    private static func refuseZero(in name: String, at place: JSONPointer) throws(JSONSchema.Fault) {
        guard name.utf8.contains(0) else { return }
        throw JSONSchema.Fault(pointer: place, detail: "a name with the character U+0000 cannot be checked")
    }
}

/// References.
extension SchemaWalk {
    /// The place in the schema that a reference names, and what is there.
    private func target(
        of reference: JSONValue, at place: JSONPointer
    ) throws(JSONSchema.Fault) -> (place: JSONPointer, value: JSONValue) {
        guard case .string(let text) = reference, text.hasPrefix("#"), let decoded = Self.decoded(text.dropFirst()),
            let target = JSONPointer(text: decoded), let value = root[pointer: target]
        else {
            throw JSONSchema.Fault(
                pointer: place, detail: "expected # and a JSON Pointer to a part of this schema; no other is fetched")
        }
        return (target, value)
    }

    /// The fragment of a URI without its escapes (RFC 3986, section 2.1); nil where one is none.
    private static func decoded(_ fragment: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = fragment.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                let escaped = UInt8(String(Substring(digits)), radix: 16)
            else { return nil }
            bytes.append(escaped)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Refuses schemas that come back to themselves without looking at a part of the value: they have no end.
    private func refuseCycles() throws(JSONSchema.Fault) {
        var isKnown = [Bool](repeating: false, count: found.count)
        var isOnPath = isKnown
        for start in found.indices where !isKnown[start] {
            var path: [(number: Int, rest: ArraySlice<Int>)] = [(start, sameValue[start][...])]
            isOnPath[start] = true
            while let last = path.indices.last {
                guard let next = path[last].rest.popFirst() else {
                    let (number, _) = path.removeLast()
                    (isKnown[number], isOnPath[number]) = (true, false)
                    continue
                }
                guard !isOnPath[next] else {
                    throw JSONSchema.Fault(
                        pointer: found[path[last].number].place,
                        detail: "the schema refers to itself for the same value")
                }
                if isKnown[next] { continue }
                isOnPath[next] = true
                path.append((next, sameValue[next][...]))
            }
        }
    }
}
