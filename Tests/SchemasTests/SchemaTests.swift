import StateJSON
import Testing

@testable import Schemas

private func schema(_ text: String) throws -> JSONSchema {
    try JSONSchema(JSONValue(parsing: Array(text.utf8), depthMax: 1000))
}

@Suite("A JSON Schema")
struct SchemaTests {
    @Test(
        "a fault has the place in the value, and says what was expected",
        arguments: [
            (##"{"amount":1}"##, []), (##"{"amount":1.0}"##, []), (##"{"amount":9007199254740993}"##, []),
            (##"{"amount":"x"}"##, ["/amount: expected integer"]),
            (##"{"amount":1.5}"##, ["/amount: expected integer"]),
            (##"{}"##, ["/amount: is missing"]), (##"[]"##, [": expected object"]),
            (##"{"amount":1,"z":1}"##, ["/z: the schema has no such member"]),
            (
                ##"{"amount":1,"list":["ab",3,"c"]}"##,
                ["/list/1: expected string", "/list/2: failed to match the pattern ^a"]
            ),
            (##"{"amount":1,"~/]":1}"##, ["/~0~1]: expected string"]),
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
            (##"{"patternProperties":{"a":{}}}"##, "/patternProperties"),
            (##"{"properties":{"a":{"$id":"b"}}}"##, "/properties/a/$id"),
            (##"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"##, "/$schema"),
            (##"{"pattern":"(?=a)"}"##, "/pattern"), (##"{"pattern":"(a)\\1"}"##, "/pattern"),
            (##"{"pattern":1}"##, "/pattern"),
            (##"{"$ref":"http://example.com/a"}"##, "/$ref"), (##"{"$ref":"#/definitions/a"}"##, "/$ref"),
            (##"{"$ref":"#"}"##, ""),
            (##"{"anyOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"not":{"$ref":"#"}}}}"##, ""),
            (##"{"items":[1]}"##, "/items/0"), (##"{"type":"integr"}"##, ""), (##"{"allOf":[]}"##, "/allOf"), ("1", ""),
        ])
    func refusals(text: String, place: String) throws {
        let fault = #expect(throws: JSONSchema.Fault.self) { try schema(text) }

        #expect(fault.map { $0.pointer.description.hasPrefix(place) } == true, "\(String(describing: fault))")
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

    @Test("a pattern takes time that grows with the text alone", .timeLimit(.minutes(1)))
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
