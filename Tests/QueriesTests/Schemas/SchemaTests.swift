import StateJSON
import TestSupport
import Testing

@testable import Queries

private func schema(_ text: String) throws -> JSONSchema {
    try JSONSchema(JSONValue(parsing: Array(text.utf8), depthMax: 1000))
}

@Suite("A JSON Schema")
struct SchemaTests {
    @Test(
        "a fault has the place in the value, and says what was expected",
        arguments: [
            (##"{"amount":1}"##, []), (##"{"amount":1.0}"##, []), (##"{"amount":9007199254740993}"##, []),
            (##"{"amount":"x"}"##, ["/amount: expected an integer"]),
            (##"{"amount":1.5}"##, ["/amount: expected an integer"]),
            (##"{}"##, ["/amount: is missing"]), (##"[]"##, [": expected an object"]),
            (##"{"amount":1,"z":1}"##, ["/z: the schema has no such member"]),
            (
                ##"{"amount":1,"list":["ab",3,"c"]}"##,
                ["/list/1: expected a string", "/list/2: failed to match the pattern ^a"]
            ),
            (##"{"amount":1,"~/]":1}"##, ["/~0~1]: expected a string"]),
        ])
    func faults(value: String, expected: [String]) throws {
        let schema = try schema(
            ##"{"type":"object","required":["amount"],"additionalProperties":false,"properties":{"amount":{"type":"integer"},"list":{"items":{"$ref":"#/definitions/a"}},"~/]":{"type":"string"}},"definitions":{"a":{"type":"string","pattern":"^a"}}}"##
        )

        let faults = schema.faults(of: Array(value.utf8)).map { "\($0.pointer): \($0.detail)" }

        #expect(faults == expected)
    }

    @Test(
        "what this server does not know is refused with its place",
        arguments: [
            (##"{"properties":{"a":{"minimun":1}}}"##, "/properties/a/minimun"),
            (##"{"$defs":{"a":{"minimun":1}}}"##, "/$defs/a/minimun"), (##"{"X-of":1}"##, "/X-of"),
            (##"{"patternProperties":{"(?=a)":{}}}"##, "/patternProperties/(?=a)"),
            (##"{"multipleOf":0}"##, "/multipleOf"), (##"{"multipleOf":-1}"##, "/multipleOf"),
            (##"{"maximum":"1"}"##, "/maximum"), (##"{"minimum":1.00000000000000000001}"##, "/minimum"),
            (##"{"minLength":-1}"##, "/minLength"), (##"{"minLength":1.5}"##, "/minLength"),
            (##"{"uniqueItems":1}"##, "/uniqueItems"), (##"{"required":["a",1]}"##, "/required"),
            (##"{"enum":1}"##, "/enum"),
            // A reference leads to a schema, wherever that stands.
            (
                ##"{"properties":{"a":{"enum":[{"minimun":1}]},"b":{"$ref":"#/properties/a/enum/0"}}}"##,
                "/properties/a/enum/0/minimun"
            ),
            (##"{"properties":{"a":{"$id":"b"}}}"##, "/properties/a/$id"),
            (##"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"##, "/$schema"),
            (##"{"$schema":"http://json-schema.org/draft-04/schema#"}"##, "/$schema"),
            (##"{"pattern":"(?=a)"}"##, "/pattern"), (##"{"pattern":"(a)\\1"}"##, "/pattern"),
            (##"{"pattern":1}"##, "/pattern"),
            (##"{"$ref":"http://example.com/a"}"##, "/$ref"), (##"{"$ref":"#/definitions/a"}"##, "/$ref"),
            (##"{"$ref":"#"}"##, ""),
            (##"{"anyOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"not":{"$ref":"#"}}}}"##, ""),
            (##"{"items":[1]}"##, "/items/0"), (##"{"type":"integr"}"##, "/type"), (##"{"allOf":[]}"##, "/allOf"),
            ("1", ""),
        ])
    func refusals(text: String, place: String) throws {
        let fault = #expect(throws: JSONSchema.Fault.self) { try schema(text) }

        #expect(fault.map { $0.pointer.description.hasPrefix(place) } == true, "\(String(describing: fault))")
    }

    @Test(
        "each keyword holds on both sides of its limit",
        arguments: [
            (##"{"maximum":3}"##, ["3", "2.5", "\"4\""], ["4", "3.0000001"]),
            (##"{"minimum":3}"##, ["3", "1e300"], ["2", "-1e300"]),
            (##"{"exclusiveMaximum":3}"##, ["2"], ["3", "3.0"]), (##"{"exclusiveMinimum":3}"##, ["4"], ["3"]),
            (##"{"multipleOf":2}"##, ["4", "-4", "0", "4.0", "\"x\""], ["3", "2.5", "4.5"]),
            (##"{"multipleOf":0.01}"##, ["4.02", "1", "-0.07"], ["4.021"]),
            (##"{"multipleOf":3}"##, ["18446744073709551615", "3e300"], ["18446744073709551614", "1e30"]),
            (##"{"maxLength":2}"##, ["\"🙂é\""], ["\"abc\""]), (##"{"minLength":2.0}"##, ["\"🙂é\""], ["\"é\""]),
            (##"{"maxItems":1}"##, ["[1]", "{}"], ["[1,2]"]), (##"{"minItems":1}"##, ["[1]"], ["[]"]),
            (##"{"maxProperties":1}"##, [##"{"a":1}"##], [##"{"a":1,"b":1}"##]),
            (##"{"minProperties":1}"##, [##"{"a":1}"##], ["{}"]),
            (##"{"const":{"a":[1,2.0]}}"##, [##"{"a":[1.0,2]}"##], [##"{"a":[2,1]}"##, ##"{"a":[1,2],"b":1}"##]),
            (##"{"enum":[null,"a",1]}"##, ["null", "\"a\"", "1.0"], ["0", "false", "\"b\""]),
            (
                ##"{"uniqueItems":true}"##, ["[1,\"1\",true,[1],{\"a\":1}]"],
                ["[1,2,1.0]", "[{\"a\":1,\"b\":0},{\"b\":-0.0,\"a\":1}]"]
            ),
            (##"{"uniqueItems":false}"##, ["[1,1]"], []),
            (##"{"not":{"type":"string"}}"##, ["1"], ["\"a\""]),
            (##"{"oneOf":[{"minimum":2},{"maximum":3}]}"##, ["1", "4"], ["2"]),
            (##"{"anyOf":[{"minimum":3},{"maximum":2}]}"##, ["2", "3"], ["2.5"]),
            (##"{"if":{"minimum":0},"then":{"maximum":9},"else":{"minimum":-9}}"##, ["9", "-9"], ["10", "-10"]),
            (##"{"contains":{"const":1}}"##, ["[2,1]", "1"], ["[]", "[2]"]),
            (##"{"items":[{"type":"null"}],"additionalItems":false}"##, ["[null]", "[]"], ["[1]", "[null,1]"]),
            (##"{"items":[true],"additionalItems":{"type":"null"}}"##, ["[1,null]"], ["[1,1]"]),
            (
                ##"{"dependencies":{"a":["b"],"c":{"required":["d"]},"e":{"required":["f"]}}}"##,
                [##"{"a":1,"b":1}"##, ##"{"b":1}"##, ##"{"e":1,"f":1}"##],
                [##"{"a":1}"##, ##"{"c":1,"f":1}"##, ##"{"e":1,"d":1}"##]
            ),
            (##"{"propertyNames":{"maxLength":1}}"##, [##"{"a":1}"##], [##"{"ab":1}"##]),
            (
                ##"{"patternProperties":{"^a":{"type":"null"},"b$":{"type":["null","integer"]}},"additionalProperties":false}"##,
                [##"{"a":null,"xb":1}"##], [##"{"ab":1}"##, ##"{"c":null}"##, ##"{"xb":"1"}"##]
            ),
            (
                ##"{"properties":{"a":{"type":"null"}},"patternProperties":{"a":{"enum":[null,1]}},"additionalProperties":{"type":"string"}}"##,
                [##"{"a":null,"ba":1,"c":"x"}"##], [##"{"a":1}"##, ##"{"c":1}"##]
            ),
            ("true", ["1"], []), ("false", [], ["1"]), ("{}", ["[]"], []),
            // What other drafts and the writers of schemas add.
            (
                ##"{"$defs":{"a":{"type":"integer","deprecated":true,"x-of":{"minimum":"9"}}},"properties":{"b":{"$ref":"#/$defs/a"}}}"##,
                [##"{"b":1}"##], [##"{"b":"x"}"##]
            ),
            (##"{"$schema":"http://json-schema.org/draft-06/schema#","type":"null"}"##, ["null"], ["1"]),
            // What is exact with 64 bits, and what has more digits is a double.
            (##"{"maximum":9007199254740992}"##, ["9007199254740992"], ["9007199254740993"]),
            (
                ##"{"const":9223372036854775807}"##, ["9223372036854775807"],
                ["9223372036854775806", "9223372036854775808"]
            ),
            (
                ##"{"exclusiveMaximum":9223372036854775808}"##, ["9223372036854775807"],
                ["9223372036854775808", "1e300"]
            ),
            (##"{"type":"integer"}"##, ["100000000000000000000", "1e300", "-9223372036854775808"], ["1.5e-300"]),
            // A name with U+0000 is a name.
            (
                ##"{"required":["a\u0000b"],"properties":{"a\u0000b":{"type":"null"}},"additionalProperties":false}"##,
                [##"{"a\u0000b":null}"##], [##"{"a\u0000b":1}"##, ##"{"a":null}"##, ##"{"a\u0000c":null}"##]
            ),
            // Names that are parts of a way, and references to and from them.
            (
                ##"{"propertyNames":{"maxLength":3},"properties":{"a":{"$ref":"#"}}}"##, [##"{"a":{"abc":1}}"##],
                [##"{"a":{"abcd":1}}"##]
            ),
            (
                ##"{"properties":{"A":{"$ref":"#/properties/a/properties/b"},"a":{"properties":{"b":{"type":"integer"}}},"a/properties/b":{"type":"string"}}}"##,
                [##"{"A":1,"a":{"b":1},"a/properties/b":"x"}"##], [##"{"a/properties/b":1}"##]
            ),
            (
                ##"{"properties":{"a":{"$ref":"#/definitions/"},"b":{"$ref":"#/definitions/%7E1%25~0"}},"definitions":{"":{"type":"integer"},"/%~":{"type":"null"}}}"##,
                [##"{"a":1,"b":null}"##], [##"{"a":"x"}"##, ##"{"b":1}"##]
            ),
        ] as [(String, [String], [String])])
    func keywords(text: String, fitting: [String], misfits: [String]) throws {
        let schema = try schema(text)

        for value in fitting { #expect(schema.faults(of: Array(value.utf8)).isEmpty, "\(value)") }
        for value in misfits { #expect(!schema.faults(of: Array(value.utf8)).isEmpty, "\(value)") }
    }

    @Test("a name that is no keyword gets the keyword that may be meant")
    func hint() {
        let fault = #expect(throws: JSONSchema.Fault.self) { try schema(##"{"minimun":1}"##) }

        #expect(fault?.detail == "this server does not know the keyword; did you mean minimum?")
    }

    @Test("a name that is no keyword and has no schema gets no place among the members")
    func noMember() {
        let fault = #expect(throws: JSONSchema.Fault.self) { try schema(##"{"links":{"rel":"self"}}"##) }

        #expect(fault?.detail == "this server does not know the keyword")
    }

    @Test(
        "a member that stands where keywords do gets its place",
        arguments: [
            (##"{"amount":"integer"}"##, ##""amount":{"type":"integer"}"##),
            (##"{"amount":{"type":"integer","minimum":1}}"##, ##""amount":{"type":"integer","minimum":1}"##),
        ])
    func member(text: String, corrected: String) {
        let fault = #expect(throws: JSONSchema.Fault.self) { try schema(text) }

        #expect(
            fault?.detail.hasSuffix(##"stand below properties: {"type":"object","properties":{\##(corrected)}}"##)
                == true)
    }

    @Test("a check tells so many faults, and no more")
    func most() throws {
        let schema = try schema(##"{"items":{"type":"integer","minimum":3}}"##)
        let value = Array(("[" + [String](repeating: "1", count: 50).joined(separator: ",") + "]").utf8)

        #expect(schema.faults(of: value).count == 16)
        #expect(schema.faults(of: value, most: 1).map(\.detail) == ["expected at least 3"])
    }

    @Test("the choices of a schema that refers to itself have a bound", .timeLimit(.minutes(5)))
    func choices() throws {
        let schema = try schema(
            ##"{"definitions":{"a":{"properties":{"a":{"$ref":"#/definitions/t"}}},"t":{"anyOf":[{"allOf":[{"$ref":"#/definitions/a"},{"required":["x"]}]},{"allOf":[{"$ref":"#/definitions/a"},{"required":["y"]}]}]}},"$ref":"#/definitions/t"}"##
        )
        let value = String(repeating: ##"{"a":"##, count: 60) + "{}" + String(repeating: "}", count: 60)

        let faults = schema.faults(of: Array(value.utf8))

        #expect(faults.map(\.detail) == ["the schema has too many choices for a value of this size"])
    }

    @Test("a value that nests too deeply for its schema does not fit")
    func depth() throws {
        let nested =
            String(repeating: ##"{"allOf":["##, count: 20) + ##"{"items":{"$ref":"#"}}"##
            + String(repeating: "]}", count: 20)
        let schema = try schema(nested)
        func value(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }

        #expect(schema.faults(of: value(60)).isEmpty)
        #expect(schema.faults(of: value(1000)).map(\.detail) == ["is nested too deeply for its schema"])
    }

    @Test("a schema has many references one behind the other")
    func chain() throws {
        let definitions = (0..<3000).map { ##""\##($0)":{"properties":{"a":{"$ref":"#/definitions/\##($0 + 1)"}}}"## }
        let schema = try schema(
            ##"{"$ref":"#/definitions/0","definitions":{\##(definitions.joined(separator: ",")),"3000":{"type":"null"}}}"##
        )

        #expect(schema.faults(of: Array(##"{"a":{"a":{"a":1}}}"##.utf8)).isEmpty)
    }

    @Test("elements are compared in time that grows with their number", .timeLimit(.minutes(5)))
    func unique() throws {
        let schema = try schema(##"{"uniqueItems":true}"##)
        let numbers = (0..<100_000).map(String.init).joined(separator: ",")

        #expect(schema.faults(of: Array("[\(numbers)]".utf8)).isEmpty)
        #expect(schema.faults(of: Array("[\(numbers),7.0]".utf8)).map(\.pointer) == ["/100000"])
    }

    @Test(
        "elements that are nearly equal are compared as fast as others",
        arguments: [
            // Whole numbers with one nearest double, in pairs.
            { "[\(9_223_372_036_854_775_808 + UInt64($0 / 1000)),\(9_223_372_036_854_775_808 + UInt64($0 % 1000))]" },
            {
                ##"{"a":\##(9_223_372_036_854_775_808 + UInt64($0 / 1000)),"b":[\##(UInt64.max - UInt64($0 % 1000))]}"##
            },
            { "\(UInt64.max - UInt64($0))" }, { "[[[[\(Double($0) / 3)]]]]" },
            { "\"\(String(repeating: "a", count: $0 % 50))\($0)\"" },
        ] as [@Sendable (Int) -> String])
    func nearlyEqual(element: @Sendable (Int) -> String) throws {
        let schema = try schema(##"{"uniqueItems":true}"##)
        let elements = (0..<20_000).map(element)
        var value: [UInt8] = []
        let time = processorTime {
            value = Array("[\(elements.joined(separator: ","))]".utf8)
            #expect(schema.faults(of: value).isEmpty)
        }

        #expect(time < .seconds(2), "\(time)")
        #expect(
            schema.faults(of: value.dropLast() + Array(",\(elements[7])]".utf8)).map(\.detail)
                == ["is the same as the element 7"])
    }

    @Test("arrays in arrays are looked at once for all of them", .timeLimit(.minutes(5)))
    func nestedUnique() throws {
        let schema = try schema(##"{"uniqueItems":true,"items":{"$ref":"#"}}"##)
        let numbers = (0..<100_000).map(String.init).joined(separator: ",")
        func nested(_ inner: String) -> [UInt8] {
            Array((String(repeating: "[", count: 800) + inner + String(repeating: "]", count: 800)).utf8)
        }

        #expect(schema.faults(of: nested(numbers)).isEmpty)
        #expect(schema.faults(of: nested("1,2,1")).map(\.detail) == ["is the same as the element 0"])
    }

    @Test("a schema that refers to itself for a part of the value is one of trees")
    func recursion() throws {
        let schema = try schema(
            ##"{"type":"object","properties":{"next":{"$ref":"#"},"value":{"type":"integer"}},"required":["value"]}"##)
        func nested(_ depth: Int, _ last: String) -> [UInt8] {
            Array(
                (String(repeating: ##"{"value":1,"next":"##, count: depth) + last + String(repeating: "}", count: depth))
                    .utf8)
        }

        #expect(schema.faults(of: nested(900, ##"{"value":2}"##)).isEmpty)
        #expect(schema.faults(of: nested(3, "{}")).map(\.pointer.description) == ["/next/next/next/value"])
    }

    @Test("a pattern takes time that grows with the text alone", .timeLimit(.minutes(5)))
    func pattern() throws {
        let schema = try schema(##"{"pattern":"(a|b)*c"}"##)

        let faults = schema.faults(of: Array(("\"" + String(repeating: "ab", count: 500_000) + "\"").utf8))

        #expect(faults.count == 1)
    }

    @Test("one schema is used by many threads at once")
    func threads() async throws {
        let schema = try schema(##"{"items":{"type":"integer","pattern":"a"},"uniqueItems":true}"##)
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<64 {
                group.addTask {
                    (0..<200).allSatisfy { _ in
                        schema.faults(of: Array("[\(number),1.5]".utf8)).count == 1
                            && schema.faults(of: Array("[\(number),\(number + 1)]".utf8)).isEmpty
                    }
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}
