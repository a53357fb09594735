import Foundation
import TestSupport
import Testing

@testable import StateHTTP
@testable import StateJSON
@testable import StateStore

/// Types of which a schema is asked for.
private enum Shapes {
    enum Color: String, Codable, CaseIterable { case red, green }
    enum Level: Int, Codable, CaseIterable { case low = 1, high = 2 }
    enum Plain: String, Codable { case one, two }
    enum Choice: Codable { case none; case some(number: Int, text: String?) }
    enum Lenient: String, Codable, CaseIterable {
        case known, other
        init(from decoder: any Decoder) throws {
            self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .other
        }
    }
    struct Point: Codable { var x: Double; var y: Double }
    struct Optionals: Codable { var note: String?; var color: Color?; var point: Point?; var list: [Int?] }
    struct Node: Codable { var children: [Node]; var name: String; var byName: [String: Node] }
    final class Link: Codable {
        var next: Link?
        var number: Int
        init(_ number: Int, _ next: Link?) { (self.number, self.next) = (number, next) }
    }
    struct Behind: Codable { var plain: Plain; var choice: Choice; var name: String }
    struct Known: Codable {
        var id: UUID; var date: Date; var data: Data; var url: URL; var price: Decimal; var name: String
    }
    struct Positive: Codable {
        var amount: Int
        var name: String
        init(amount: Int, name: String) { (self.amount, self.name) = (amount, name) }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            amount = try container.decode(Int.self, forKey: .amount)
            guard amount > 0 else {
                throw DecodingError.dataCorruptedError(forKey: .amount, in: container, debugDescription: "not positive")
            }
            name = try container.decode(String.self, forKey: .name)
        }
    }
    /// It refuses all samples.
    struct Strict: Codable {
        var number: Int
        var name = "x"
        init(number: Int) { self.number = number }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            number = try container.decode(Int.self, forKey: .number)
            guard number > 100 else {
                throw DecodingError.dataCorruptedError(forKey: .number, in: container, debugDescription: "too small")
            }
            name = try container.decode(String.self, forKey: .name)
        }
    }
    struct Either: Codable {
        var text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) {
                self.text = text
            } else {
                text = "\(try value.decode(Int.self))"
            }
        }
        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            if let number = Int(text) { try value.encode(number) } else { try value.encode(text) }
        }
    }
    struct Defaulted: Codable {
        var count: Int
        var tags: [String]
        init(count: Int, tags: [String]) { (self.count, self.tags) = (count, tags) }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            count = (try? container.decode(Int.self, forKey: .count)) ?? 0
            tags = container.contains(.tags) ? try container.decode([String].self, forKey: .tags) : []
        }
    }
    struct Nested: Codable {
        var deep: Int
        init(deep: Int) { self.deep = deep }
        enum Outer: CodingKey { case inner }
        enum Inner: CodingKey { case deep }
        init(from decoder: any Decoder) throws {
            let inner = try decoder.container(keyedBy: Outer.self).nestedContainer(keyedBy: Inner.self, forKey: .inner)
            deep = try inner.decode(Int.self, forKey: .deep)
        }
        func encode(to encoder: any Encoder) throws {
            var outer = encoder.container(keyedBy: Outer.self)
            var inner = outer.nestedContainer(keyedBy: Inner.self, forKey: .inner)
            try inner.encode(deep, forKey: .deep)
        }
    }
    struct Pair: Codable {
        var number: Int
        var text: String
        init(_ number: Int, _ text: String) { (self.number, self.text) = (number, text) }
        init(from decoder: any Decoder) throws {
            var elements = try decoder.unkeyedContainer()
            number = try elements.decode(Int.self)
            text = try elements.decode(String.self)
        }
        func encode(to encoder: any Encoder) throws {
            var elements = encoder.unkeyedContainer()
            try elements.encode(number)
            try elements.encode(text)
        }
    }
    /// It writes another form than it reads first.
    struct Renamed: Codable {
        var name: String
        init(name: String) { self.name = name }
        enum Keys: CodingKey { case name, title }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            name =
                try container.decodeIfPresent(String.self, forKey: .title)
                ?? container.decode(String.self, forKey: .name)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(name, forKey: .title)
        }
    }
    struct Empty: Codable {}
    /// Its fields depend on its phase.
    struct Phased: Codable {
        enum Phase: String, Codable, CaseIterable { case out, coming, on, failed }
        enum Keys: CodingKey { case phase, user, reason }
        var phase: Phase
        var user: String?
        var reason: String?
        init(_ phase: Phase, user: String? = nil, reason: String? = nil) {
            (self.phase, self.user, self.reason) = (phase, user, reason)
        }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            phase = try container.decode(Phase.self, forKey: .phase)
            if phase == .on { user = try container.decode(String.self, forKey: .user) }
            if phase == .failed { reason = try container.decode(String.self, forKey: .reason) }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(phase, forKey: .phase)
            try container.encodeIfPresent(user, forKey: .user)
            try container.encodeIfPresent(reason, forKey: .reason)
        }
    }
    struct Anything: Codable { var value: JSONValue; var more: [String: JSONValue] }
}

/// A type with its schema, values of it, and JSON that it takes or refuses.
private struct Row {
    let name: String
    let schema: JSONValue
    let expected: JSONValue?
    /// Encodings of values of the type.
    let values: [JSONValue]
    /// Whether the type takes a text.
    let takes: (String) -> Bool

    init<Value: Codable>(_ type: Value.Type, _ expected: String?, _ values: [Value]) throws {
        name = "\(type)"
        schema = SchemaProbe.schema(of: type)
        self.expected = try expected.map { try JSONValue(parsing: Array($0.utf8)) }
        self.values = try values.map { try JSONValue(parsing: JSON.encode($0)) }
        takes = { (try? JSON.decode(Value.self, from: Array($0.utf8))) != nil }
    }
}

@Suite("JSON Schemas of types")
struct SchemaTests {
    private static let node =
        #"{"type":"object","properties":{"children":{"type":"array","items":{}},"name":{"type":"string"},"byName":{"type":"object","additionalProperties":{}}},"additionalProperties":false,"required":["children","name","byName"]}"#

    private static func rows() throws -> [Row] {
        var table = EntityTable<Int, Shapes.Point>()
        table[1] = Shapes.Point(x: 1, y: 2)
        let leaf = Shapes.Node(children: [], name: "leaf", byName: [:])
        return try [
            Row(Int.self, #"{"type":"integer"}"#, [1, -5]),
            Row(UInt8.self, #"{"type":"integer","minimum":0,"maximum":255}"#, [0, 255]),
            Row(Double.self, #"{"type":"number"}"#, [0.5, 3]),
            Row([String: Int].self, #"{"type":"object","additionalProperties":{"type":"integer"}}"#, [[:], ["a": 1]]),
            Row(
                [Int: String].self, #"{"type":"object","additionalProperties":{"type":"string"}}"#, [[1: "a", -7: "b"]]),
            Row([Shapes.Color: Int].self, #"{"type":"array"}"#, [[.red: 1]]),
            Row([Date: Int].self, #"{"type":"array"}"#, [[Date(timeIntervalSince1970: 0): 1]]),
            Row(
                Shapes.Choice.self, #"{"type":"object"}"#,
                [.none, .some(number: 1, text: nil), .some(number: 1, text: "a")]),
            Row(Shapes.Color.self, #"{"type":"string","enum":["red","green"]}"#, [.red]),
            Row(Shapes.Level.self, #"{"type":"integer","enum":[1,2]}"#, [.low, .high]),
            Row(Shapes.Plain.self, #"{"type":"string"}"#, [.one]),
            Row(Shapes.Lenient.self, #"{"type":"string"}"#, [.known]),
            Row(
                [[Shapes.Color]].self,
                #"{"type":"array","items":{"type":"array","items":{"type":"string","enum":["red","green"]}}}"#,
                [[], [[.red], []]]),
            Row([[[Int]]].self, nil, [[[[1]], []]]),
            Row(Set<Shapes.Color>.self, nil, [[.red]]),
            Row(Shapes.Node.self, node, [leaf, .init(children: [leaf], name: "", byName: ["a": leaf])]),
            Row([Shapes.Node].self, nil, [[leaf]]),
            Row(
                Shapes.Link.self,
                #"{"type":"object","properties":{"next":{},"number":{"type":"integer"}},"additionalProperties":false,"required":["number"]}"#,
                [Shapes.Link(1, Shapes.Link(2, nil))]),
            Row(
                Shapes.Optionals.self,
                #"{"type":"object","properties":{"note":{"type":["string","null"]},"color":{"anyOf":[{"type":"string","enum":["red","green"]},{"type":"null"}]},"point":{"type":["object","null"],"properties":{"x":{"type":"number"},"y":{"type":"number"}},"additionalProperties":false,"required":["x","y"]},"list":{"type":"array","items":{"type":["integer","null"]}}},"additionalProperties":false,"required":["list"]}"#,
                [.init(list: [1, nil]), .init(note: "a", color: .red, point: .init(x: 1, y: 0.5), list: [])]),
            Row(
                Shapes.Behind.self,
                #"{"type":"object","properties":{"plain":{"type":"string"}},"required":["plain"]}"#,
                [.init(plain: .one, choice: .none, name: "a")]),
            Row(
                Shapes.Known.self,
                #"{"type":"object","properties":{"id":{"type":"string","format":"uuid"},"date":{"type":"string","format":"date-time"},"data":{"type":"string","contentEncoding":"base64"},"url":{"type":"string"},"price":{"type":"number"},"name":{"type":"string"}},"additionalProperties":false,"required":["id","date","data","url","price","name"]}"#,
                [
                    .init(
                        id: UUID(), date: Date(timeIntervalSince1970: 0.5), data: Data([1]), url: URL(filePath: "/a"),
                        price: 1, name: "")
                ]),
            Row(
                Shapes.Positive.self,
                #"{"type":"object","properties":{"amount":{"type":"integer"},"name":{"type":"string"}},"additionalProperties":false,"required":["amount","name"]}"#,
                [.init(amount: 1, name: "a")]),
            Row(
                Shapes.Strict.self,
                #"{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}"#,
                [.init(number: 101)]),
            Row(Shapes.Either.self, "{}", [.init("a"), .init("1")]),
            Row(
                Shapes.Defaulted.self,
                #"{"type":"object","properties":{"count":{},"tags":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}"#,
                [.init(count: 1, tags: ["a"])]),
            Row(
                Shapes.Nested.self,
                #"{"type":"object","properties":{"inner":{"type":"object","properties":{"deep":{"type":"integer"}},"additionalProperties":false,"required":["deep"]}},"additionalProperties":false,"required":["inner"]}"#,
                [.init(deep: 1)]),
            Row(Shapes.Pair.self, #"{"type":"array"}"#, [.init(1, "a")]),
            Row(Range<Int>.self, #"{"type":"array"}"#, [1..<2]),
            Row(Shapes.Renamed.self, nil, [.init(name: "a")]),
            Row(Shapes.Empty.self, "{}", [.init()]),
            Row(
                Shapes.Phased.self,
                #"{"type":"object","properties":{"phase":{"type":"string","enum":["out","coming","on","failed"]},"user":{"type":"string"},"reason":{"type":"string"}},"required":["phase"]}"#,
                [.init(.out), .init(.on, user: "a"), .init(.failed, reason: "b")]),
            Row(
                Shapes.Anything.self,
                #"{"type":"object","properties":{"value":{},"more":{"type":"object","additionalProperties":{}}},"additionalProperties":false,"required":["value","more"]}"#,
                [.init(value: [1, "a", nil], more: ["a": [:]])]),
            Row(EntityTable<Int, Shapes.Point>.self, nil, [table]),
        ]
    }

    @Test("each type has the schema that it should have")
    func schemas() throws {
        for row in try Self.rows() {
            guard let expected = row.expected else { continue }
            #expect(row.schema == expected, "\(row.name): \(String(decoding: row.schema.text, as: UTF8.self))")
        }
    }

    @Test("every value that a type writes validates")
    func written() throws {
        for row in try Self.rows() {
            for value in row.values {
                #expect(
                    validates(value, row.schema),
                    "\(row.name): \(String(decoding: value.text, as: UTF8.self)) against \(String(decoding: row.schema.text, as: UTF8.self))"
                )
            }
        }
    }

    @Test("whatever a type takes validates, among many changes of its values")
    func taken() throws {
        var generator = SplitMix(seed: 5)
        var (takenCount, refusedCount) = (0, 0)
        for row in try Self.rows() {
            for value in row.values {
                for _ in 0..<300 {
                    var changed = value
                    mutate(&changed, using: &generator)
                    let text = String(decoding: changed.text, as: UTF8.self)
                    guard row.takes(text) else {
                        refusedCount += 1
                        continue
                    }
                    takenCount += 1
                    #expect(
                        validates(changed, row.schema),
                        "\(row.name): \(text) against \(String(decoding: row.schema.text, as: UTF8.self))")
                }
            }
        }
        #expect(takenCount > 1000 && refusedCount > 1000)
    }

    /// Puts something else in one place of a value.
    private func mutate(_ value: inout JSONValue, using generator: inout SplitMix) {
        let others: [JSONValue] = [
            nil, true, 0, 1, -1, 1.5, 300, "", "a", "red", "2001-01-01T00:00:00Z", [], [1], ["a"], [:], ["a": 1],
            ["a": ["x": 1]],
        ]
        switch value {
        case .object(var object) where !object.members.isEmpty && Int.random(in: 0..<5, using: &generator) > 0:
            guard let key = object.members.randomElement(using: &generator)?.key else { return }
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: object[key] = nil
            case 1: object["more"] = others.randomElement(using: &generator)
            default:
                guard var member = object[key] else { return }
                mutate(&member, using: &generator)
                object[key] = member
            }
            value = .object(object)
        case .array(var elements) where !elements.isEmpty && Int.random(in: 0..<5, using: &generator) > 0:
            let index = Int.random(in: elements.indices, using: &generator)
            if Int.random(in: 0..<4, using: &generator) == 0 {
                elements.append(others.randomElement(using: &generator) ?? nil)
            } else {
                mutate(&elements[index], using: &generator)
            }
            value = .array(elements)
        default: value = others.randomElement(using: &generator) ?? nil
        }
    }

    /// Whether a value validates against a schema of the keywords that the probe uses.
    private func validates(_ value: JSONValue, _ schema: JSONValue) -> Bool {
        guard case .object(let keywords) = schema else { return schema == true }
        return keywords.members.allSatisfy { keyword, argument in
            switch (keyword, argument, value) {
            case ("type", .array(let kinds), _): return kinds.contains { isOf($0, value) }
            case ("type", _, _): return isOf(argument, value)
            case ("enum", .array(let choices), _): return choices.contains(value)
            case ("anyOf", .array(let choices), _): return choices.contains { validates(value, $0) }
            case ("minimum", .integer(let least), .integer(let number)): return number >= least
            case ("maximum", .integer(let most), .integer(let number)): return number <= most
            case ("items", _, .array(let elements)): return elements.allSatisfy { validates($0, argument) }
            case ("required", .array(let names), .object(let object)):
                return names.allSatisfy { if case .string(let name) = $0 { object.contains(name) } else { false } }
            case ("properties", .object(let properties), .object(let object)):
                return object.members.allSatisfy { key, value in properties[key].map { validates(value, $0) } ?? true }
            case ("additionalProperties", _, .object(let object)):
                let named = schema[pointer: "/properties"]
                return object.members.allSatisfy { key, value in
                    if case .object(let named)? = named, named.contains(key) { return true }
                    return argument == false ? false : validates(value, argument)
                }
            case ("format", _, _), ("contentEncoding", _, _), ("minimum", _, _), ("maximum", _, _), ("items", _, _),
                ("required", _, _), ("properties", _, _), ("additionalProperties", _, _):
                return true
            default:
                Issue.record("the schema has \(keyword), which this test does not know")
                return false
            }
        }
    }

    private func isOf(_ kind: JSONValue, _ value: JSONValue) -> Bool {
        switch (kind, value) {
        case ("null", .null), ("boolean", .bool), ("string", .string), ("array", .array), ("object", .object): true
        case ("number", .integer), ("number", .unsigned), ("number", .double), ("number", .decimal): true
        case ("integer", .integer), ("integer", .unsigned): true
        case ("integer", .double(let number)): number == number.rounded()
        default: false
        }
    }
}
