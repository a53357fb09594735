import StateJSON
import Testing

@testable import StateHTTP

@Suite("A schema of draft 7 in OpenAPI")
struct SchemaOfOpenAPITests {
    @Test(
        "its keywords are those of draft 2020-12, and its references lead to the same schemas",
        arguments: [
            (
                ##"{"items":[{"type":"string"},true],"additionalItems":false}"##,
                ##"{"prefixItems":[{"type":"string"},true],"items":false}"##
            ),
            (##"{"items":{"type":"string"},"additionalItems":false}"##, ##"{"items":{"type":"string"}}"##),
            (
                ##"{"dependencies":{"a":["b"],"c":{"required":["d"]}}}"##,
                ##"{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}"##
            ),
            (
                ##"{"$ref":"#/definitions/items","minimum":1,"title":"t","definitions":{"items":{"$ref":"#/items/1"}}}"##,
                ##"{"$ref":"#/at/definitions/items","title":"t","definitions":{"items":{"$ref":"#/at/prefixItems/1"}}}"##
            ),
            (
                ##"{"$ref":"#/properties/dependencies/additionalItems"}"##,
                ##"{"$ref":"#/at/properties/dependencies/items"}"##
            ),
            (
                ##"{"$defs":{"items":{"items":[{"$ref":"#/$defs/items"}]}}}"##,
                ##"{"$defs":{"items":{"prefixItems":[{"$ref":"#/at/$defs/items"}]}}}"##
            ),
            (##"{"$ref":"#/dependencies/a~1b"}"##, ##"{"$ref":"#/at/dependentSchemas/a~1b"}"##),
            (##"{"$ref":"#"}"##, ##"{"$ref":"#/at"}"##),
            (
                ##"{"$schema":"http://json-schema.org/draft-07/schema#","const":{"items":[1]}}"##,
                ##"{"const":{"items":[1]}}"##
            ),
        ])
    func converts(schema: String, expected: String) throws {
        let parse = { (text: String) in try JSONValue(parsing: Array(text.utf8)) }

        #expect(try parse(schema).openAPISchema(at: "#/at") == parse(expected))
    }
}
