internal import StateJSON

/// Each schema inside has a number, so that a chain of references is followed by no recursion.
struct SchemaCompiler {
    typealias Fault = JSONSchema.Fault

    private static let countMax = 10_000

    private let root: JSONValue
    private var found: [(place: JSONPointer, value: JSONValue)] = []
    private var numbers: [JSONPointer: Int] = [:]
    private var sameValue: [[Int]] = []
    private(set) var rules = SchemaRules()
    private(set) var unknownFormats: [String] = []

    private struct Parts {
        var members = 0..<0
        var patterns = 0..<0
        var otherMembers = SchemaRules.anything
        var elements = 0..<0
        var items = SchemaRules.anything
        var additionalItems = SchemaRules.anything
        var condition: Int?
        var then = SchemaRules.anything
        var otherwise = SchemaRules.anything
    }

    init(_ schema: JSONValue) throws(Fault) {
        root = schema
        _ = try number(of: schema, at: .root)
        // Not by recursion: a chain of references is as long as the schema.
        while rules.schemas.count < found.count {
            let start = rules.rules.count
            try addRules(of: rules.schemas.count)
            rules.schemas.append(start..<rules.rules.count)
        }
        try refuseCycles()
    }

    private mutating func number(of value: JSONValue, at place: JSONPointer) throws(Fault) -> Int {
        if let number = numbers[place] { return number }
        guard found.count < Self.countMax else {
            throw Fault(pointer: place, detail: "a schema has at most \(Self.countMax) schemas inside")
        }
        numbers[place] = found.count
        found.append((place, value))
        sameValue.append([])
        return found.count - 1
    }

    private mutating func inner(
        _ value: JSONValue, at place: JSONPointer, inPlaceOf outer: Int? = nil
    ) throws(Fault) -> Int {
        if case .bool(let fits) = value { return fits ? SchemaRules.anything : SchemaRules.nothing }
        let number = try number(of: value, at: place)
        if let outer { sameValue[outer].append(number) }
        return number
    }

    private mutating func add(_ rule: SchemaRules.Rule) { rules.rules.append(rule) }

    private mutating func addRules(of number: Int) throws(Fault) {
        let (place, value) = found[number]
        if case .bool(let fits) = value { return fits ? () : add(.never) }
        guard case .object(let object) = value else {
            throw Fault(pointer: place, detail: "expected a schema: an object, true or false")
        }
        let start = rules.rules.count
        var parts = Parts()
        for (name, value) in object.members where name != "$ref" {
            if place == .root, try isOfTheWhole(name, value) { continue }
            // Names with `x-` are the schema writer's own.
            if name.utf8.starts(with: "x-".utf8) { continue }
            guard let keyword = Keyword(rawValue: name) else {
                let detail = "this server does not know the keyword\(Keyword.hint(name, value))"
                throw Fault(pointer: place.appending(name), detail: detail)
            }
            try add(keyword, value, at: place.appending(name), of: number, &parts)
        }
        if let reference = object["$ref"] {
            // Keywords beside a reference say nothing (draft-handrews-json-schema-01, 8.3), but references may lead there.
            rules.rules.removeSubrange(start...)
            let target = try target(of: reference, at: place.appending("$ref"))
            let numbered = try self.number(of: target.value, at: target.place)
            sameValue[number] = [numbered]
            return add(.reference(numbered))
        }
        if !parts.members.isEmpty || !parts.patterns.isEmpty || parts.otherMembers != SchemaRules.anything {
            add(.members(parts.members, patterns: parts.patterns, rest: parts.otherMembers))
        }
        let rest = parts.elements.isEmpty ? parts.items : parts.additionalItems
        if !parts.elements.isEmpty || rest != SchemaRules.anything { add(.elements(parts.elements, rest: rest)) }
        if let condition = parts.condition { add(.condition(condition, then: parts.then, else: parts.otherwise)) }
    }

    private func isOfTheWhole(_ name: String, _ value: JSONValue) throws(Fault) -> Bool {
        guard name == "$schema" else { return name == "$id" }
        // Draft 7 takes whatever draft 6 takes.
        guard case .string(let text) = value,
            ["draft-06", "draft-07"].contains(where: { text.contains("json-schema.org/\($0)/schema") })
        else {
            throw Fault(pointer: JSONPointer([name]), detail: "this server knows draft 7, and draft 6 as a part of it")
        }
        return true
    }

    private mutating func add(
        _ keyword: Keyword, _ value: JSONValue, at place: JSONPointer, of number: Int, _ parts: inout Parts
    ) throws(Fault) {
        switch keyword {
        case .format: addFormat(value, at: place)
        case .type: add(.type(try Self.types(value, at: place)))
        case .const: add(.oneOf(values: add([value]), isConstant: true))
        case .enum:
            guard case .array(let values) = value else { throw Self.expected("an array of values", at: place) }
            add(.oneOf(values: add(values), isConstant: false))
        case .maximum: try add(.maximum, value, at: place)
        case .minimum: try add(.minimum, value, at: place)
        case .exclusiveMaximum: try add(.exclusiveMaximum, value, at: place)
        case .exclusiveMinimum: try add(.exclusiveMinimum, value, at: place)
        case .multipleOf: try add(.multipleOf, value, at: place)
        case .maxItems: add(.count(.elements, isMost: true, try Self.count(value, at: place)))
        case .minItems: add(.count(.elements, isMost: false, try Self.count(value, at: place)))
        case .maxProperties: add(.count(.members, isMost: true, try Self.count(value, at: place)))
        case .minProperties: add(.count(.members, isMost: false, try Self.count(value, at: place)))
        case .maxLength: add(.count(.characters, isMost: true, try Self.count(value, at: place)))
        case .minLength: add(.count(.characters, isMost: false, try Self.count(value, at: place)))
        case .uniqueItems:
            guard case .bool(let isSet) = value else { throw Self.expected("true or false", at: place) }
            if isSet { add(.uniqueItems) }
        case .pattern:
            guard case .string(let pattern) = value else { throw Self.expected("a text", at: place) }
            add(.pattern(try add(pattern: pattern, at: place)))
        case .required: add(.required(try names(value, at: place)))
        case .items:
            if case .array = value {
                parts.elements = try schemas(value, at: place, inPlaceOf: nil)
            } else {
                parts.items = try inner(value, at: place)
            }
        case .additionalItems: parts.additionalItems = try inner(value, at: place)
        case .contains: add(.contains(try inner(value, at: place)))
        case .properties: parts.members = try members(value, at: place)
        case .patternProperties:
            let start = rules.patternMembers.count
            for (name, at, value) in try Self.members(value, at: place) {
                rules.patternMembers.append((try add(pattern: name, at: at), try inner(value, at: at)))
            }
            parts.patterns = start..<rules.patternMembers.count
        case .additionalProperties: parts.otherMembers = try inner(value, at: place)
        case .propertyNames: add(.memberNames(try inner(value, at: place)))
        case .dependencies:
            for (name, at, value) in try Self.members(value, at: place) {
                if case .array = value {
                    add(.namesBeside(name: add(name: name), try names(value, at: at)))
                } else {
                    add(.schemaBeside(name: add(name: name), try inner(value, at: at, inPlaceOf: number)))
                }
            }
        case .allOf: add(.all(try schemas(value, at: place, inPlaceOf: number)))
        case .anyOf: add(.any(try schemas(value, at: place, inPlaceOf: number)))
        case .oneOf: add(.one(try schemas(value, at: place, inPlaceOf: number)))
        case .not: add(.not(try inner(value, at: place, inPlaceOf: number)))
        case .if: parts.condition = try inner(value, at: place, inPlaceOf: number)
        case .then: parts.then = try inner(value, at: place, inPlaceOf: number)
        case .else: parts.otherwise = try inner(value, at: place, inPlaceOf: number)
        case .definitions, .definitionsOfLaterDrafts:
            for (_, at, value) in try Self.members(value, at: place) { _ = try inner(value, at: at) }
        case .comment, .title, .description, .default, .examples, .readOnly, .writeOnly, .contentEncoding,
            .contentMediaType, .deprecated:
            break
        }
    }

    private mutating func schemas(
        _ value: JSONValue, at place: JSONPointer, inPlaceOf outer: Int?
    ) throws(Fault) -> SchemaRules.Positions {
        guard case .array(let elements) = value, !elements.isEmpty else {
            throw Self.expected("an array of schemas", at: place)
        }
        let start = rules.lists.count
        for (index, element) in elements.enumerated() {
            rules.lists.append(try inner(element, at: place.appending(String(index)), inPlaceOf: outer))
        }
        return start..<rules.lists.count
    }

    private mutating func members(_ value: JSONValue, at place: JSONPointer) throws(Fault) -> SchemaRules.Positions {
        let start = rules.members.count
        for (name, at, value) in try Self.members(value, at: place) {
            rules.members.append(.init(name: add(name: name), schema: try inner(value, at: at)))
        }
        rules.bytes.withUnsafeBufferPointer { bytes in
            rules.members[start...].sort {
                SchemaRules.isBefore(
                    UnsafeBufferPointer(rebasing: bytes[$0.name]), UnsafeBufferPointer(rebasing: bytes[$1.name]))
            }
        }
        return start..<rules.members.count
    }

    private mutating func names(_ value: JSONValue, at place: JSONPointer) throws(Fault) -> SchemaRules.Positions {
        guard case .array(let names) = value else { throw Self.expected("an array of names", at: place) }
        let start = rules.names.count
        for name in names {
            guard case .string(let text) = name else { throw Self.expected("an array of names", at: place) }
            rules.names.append(add(name: text))
        }
        return start..<rules.names.count
    }

    private mutating func add(name: String) -> SchemaRules.Positions {
        let start = rules.bytes.count
        rules.bytes += name.utf8
        return start..<rules.bytes.count
    }

    private mutating func add(_ values: [JSONValue]) -> SchemaRules.Positions {
        rules.values += values
        return rules.values.count - values.count..<rules.values.count
    }

    private mutating func addFormat(_ value: JSONValue, at place: JSONPointer) {
        if case .string(let name) = value, let format = Format(rawValue: name) { return add(.format(format)) }
        unknownFormats.append("\(String(decoding: value.text.prefix(200), as: UTF8.self)) at \(place)")
    }

    private mutating func add(pattern: String, at place: JSONPointer) throws(Fault) -> Int {
        do throws(Pattern.Fault) {
            rules.patterns.append(try Pattern(pattern))
        } catch {
            throw Fault(pointer: place, detail: "RE2 does not take the pattern: \(error.detail)")
        }
        return rules.patterns.count - 1
    }

    private static func expected(_ what: String, at place: JSONPointer) -> Fault {
        Fault(pointer: place, detail: "expected \(what)")
    }

    private static func members(
        _ value: JSONValue, at place: JSONPointer
    ) throws(Fault) -> [(name: String, place: JSONPointer, value: JSONValue)] {
        guard case .object(let object) = value else { throw expected("an object of schemas", at: place) }
        return object.members.map { ($0.key, place.appending($0.key), $0.value) }
    }

    private static func types(_ value: JSONValue, at place: JSONPointer) throws(Fault) -> SchemaRules.Types {
        var types: SchemaRules.Types = []
        let names = if case .array(let names) = value { names } else { [value] }
        for name in names {
            guard case .string(let name) = name, let type = SchemaRules.Types(name) else {
                throw expected("one or more of " + SchemaRules.Types.names.joined(separator: ", "), at: place)
            }
            types.insert(type)
        }
        return types
    }

    private static func count(_ value: JSONValue, at place: JSONPointer) throws(Fault) -> Int {
        let count: Int? =
            switch value {
            case .integer(let count): Int(count)
            case .double(let count): Int(exactly: count)
            default: nil
            }
        guard let count, count >= 0 else { throw expected("a whole number of at least 0", at: place) }
        return count
    }

    private mutating func add(_ limit: SchemaRules.Limit, _ value: JSONValue, at place: JSONPointer) throws(Fault) {
        if case .decimal = value { throw Self.expected("a number of 64 bits", at: place) }
        guard let number = JSONNumber(value), limit != .multipleOf || number > .whole(0) else {
            throw Self.expected(limit == .multipleOf ? "a number above 0" : "a number", at: place)
        }
        add(.limit(limit, number, value: add([value]).lowerBound))
    }

    private func target(
        of reference: JSONValue, at place: JSONPointer
    ) throws(Fault) -> (place: JSONPointer, value: JSONValue) {
        guard case .string(let text) = reference, text.hasPrefix("#"), let decoded = Self.decoded(text.dropFirst()),
            let target = JSONPointer(text: decoded), let value = root[pointer: target]
        else {
            throw Fault(
                pointer: place, detail: "expected # and a JSON Pointer to a part of this schema; no other is fetched")
        }
        return (target, value)
    }

    /// RFC 3986, section 2.1; nil for a malformed escape.
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

    /// Schemas that come back to themselves without looking at a part of the value have no end.
    private func refuseCycles() throws(Fault) {
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
                    throw Fault(
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
