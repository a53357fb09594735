import Testing

@testable import StateJSON

@Suite("Differences")
struct DifferenceTests {
    func value(_ text: String) throws -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

    @Test(
        "the first place that differs is named",
        arguments: [
            (#"{"a":1,"b":2}"#, #"{"b":2.0,"a":1}"#, nil), (#"{"a":{"b":[1,2]}}"#, #"{"a":{"b":[1,3]}}"#, "/a/b/1"),
            (#"[1,2]"#, #"[1]"#, "/1"), (#"[1]"#, #"[1,2]"#, "/1"), (#"{"a":1}"#, #"{"a":1,"b":2}"#, "/b"),
            (#"{"a":1,"b":2}"#, #"{"a":1}"#, "/b"), ("1", "2", ""), ("{}", "[]", ""),
        ])
    func first(left: String, right: String, pointer: String?) throws {
        #expect(try value(left).firstDifference(from: value(right))?.description == pointer)
    }

    @Test(
        "a patch touches what it names, and the array whose elements it shifts",
        arguments: [
            (#"[{"op":"replace","path":"/list/0","value":1}]"#, ["/list/0"]),
            (#"[{"op":"add","path":"/list/0","value":1},{"op":"remove","path":"/list/1"}]"#, ["/list"]),
            (#"[{"op":"add","path":"/map/0","value":1},{"op":"remove","path":"/map/1"}]"#, ["/map/0", "/map/1"]),
            (#"[{"op":"replace","path":"","value":1}]"#, [""]), ("[]", []),
        ])
    func changedPointers(patch: String, places: [String]) throws {
        let before = try value(#"{"list":[5,6],"map":{"1":1}}"#)

        #expect(try before.places(changing: value(patch)).map(\.description) == places)
    }
}
