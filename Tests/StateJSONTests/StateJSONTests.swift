import TestSupport
import Testing

@testable import StateJSON

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
func json(_ value: some Encodable) throws -> String { text(try JSON.encode(value)) }

@Suite("Encoding")
struct EncodingTests {
    struct Shape: Codable, Equatable {
        var name: String
        var size: Double
        var tags: [String: Int]
        var parts: [Shape]
        var note: String?
    }

    @Test("a value encodes compactly, fields in the order of the type, dictionaries sorted")
    func compact() throws {
        let shape = Shape(
            name: "a\"\n", size: 1, tags: ["b": 2, "a": 1], parts: [Shape(name: "", size: 0.5, tags: [:], parts: [])])

        #expect(
            try json(shape)
                == #"{"name":"a\"\n","size":1,"tags":{"a":1,"b":2},"parts":[{"name":"","size":0.5,"tags":{},"parts":[]}]}"#
        )
        #expect(try JSON.decode(Shape.self, from: JSON.encode(shape)) == shape)
    }

    @Test("sets and dictionaries with other keys have one order")
    func unordered() throws {
        struct Point: Codable, Hashable { var x: Int }

        #expect(try json(Set([3, 1, 2])) == "[1,2,3]")
        #expect(try json([Point(x: 2): "b", Point(x: 1): "a"]) == #"[{"x":1},"a",{"x":2},"b"]"#)
        #expect(try json([2: "b", 1: "a"]) == #"{"1":"a","2":"b"}"#)
    }

    @Test("a dictionary inside a wrapper that encodes it itself is sorted too")
    func wrapped() throws {
        struct Wrapper: Encodable {
            var inner = Dictionary(uniqueKeysWithValues: (0..<20).map { ("k\($0)", $0) })
            func encode(to encoder: any Encoder) throws { try inner.encode(to: encoder) }
        }

        let keys = try JSONValue(parsing: JSON.encode(Wrapper()))
        guard case .object(let object) = keys else { return #expect(Bool(false), "an object") }
        #expect(object.members.map(\.key) == object.members.map(\.key).sorted())
    }

    @Test("a number that JSON cannot spell is refused", arguments: [Double.nan, .infinity, -.infinity])
    func notANumber(value: Double) {
        #expect(throws: EncodingError.self) { try JSON.encode([value]) }
    }

    @Test("a type that goes on behind the refusal of a number encodes the rest, and an empty object in its place")
    func caught() throws {
        struct Forgiving: Encodable {
            enum CodingKeys: CodingKey { case a, b }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try? container.encode(Double.nan, forKey: .a)
                try container.encode(1, forKey: .b)
            }
        }

        #expect(try json(Forgiving()) == #"{"a":{},"b":1}"#)
    }

    @Test(
        "numbers are spelled in the shortest way that reads back",
        arguments: [
            (0.1, "0.1"), (1e300, "1e+300"), (-0.0, "0"), (3.0, "3"), (9_007_199_254_740_993.0, "9007199254740992"),
        ])
    func numbers(value: Double, spelling: String) throws {
        #expect(try json(value) == spelling)
    }

    @Test("a type that encodes nothing is an empty object")
    func empty() throws {
        struct Nothing: Codable {}

        #expect(try json(Nothing()) == "{}")
        #expect(try json([Nothing(), Nothing()]) == "[{},{}]")
    }

    @Test("an enum with associated values encodes as the compiler defines it")
    func enumeration() throws {
        enum Films: Codable, Equatable { case loading, finished(titles: [String]) }

        #expect(try json(Films.loading) == #"{"loading":{}}"#)
        #expect(
            try JSON.decode(Films.self, from: JSON.encode(Films.finished(titles: ["a"]))) == .finished(titles: ["a"]))
    }
}

@Suite("Decoding")
struct DecodingTests {
    struct Action: Codable, Equatable {
        var id: Int
        var title: String
        var small: Int8?
        var nested: [Inner]?
        struct Inner: Codable, Equatable { var on: Bool }
    }

    @Test(
        "a value that does not fit names the place and what was expected",
        arguments: [
            (#"{"title":"a"}"#, "/id", "is missing; expected a whole number"),
            (#"{"id":"7","title":"a"}"#, "/id", "expected a whole number, found a string"),
            (#"{"id":7,"title":null}"#, "/title", "expected a string, found null"),
            (
                #"{"id":7,"title":"a","small":200}"#, "/small",
                "expected a whole number from -128 to 127, found another number"
            ),
            (
                #"{"id":1.5,"title":"a"}"#, "/id",
                "expected a whole number from -9223372036854775808 to 9223372036854775807, found another number"
            ),
            (
                #"{"id":-9223372036854775809,"title":"a"}"#, "/id",
                "expected a whole number from -9223372036854775808 to 9223372036854775807, found another number"
            ),
            (
                #"{"id":9223372036854775808,"title":"a"}"#, "/id",
                "expected a whole number from -9223372036854775808 to 9223372036854775807, found another number"
            ),
            (
                #"{"id":7,"title":"a","nested":[{"on":true},{"on":1}]}"#, "/nested/1/on",
                "expected true or false, found a number"
            ),
            (
                #"{"id":7,"title":"a","titel":"b"}"#, "/titel",
                "there is no such field; the known fields are id, title, small, nested"
            ),
            (#"[1]"#, "", "expected an object, found an array"),
        ])
    func mismatch(source: String, pointer: String, detail: String) {
        #expect(throws: JSONFault(.mismatch, at: JSONPointer(text: pointer)!, detail)) {
            try JSON.decode(Action.self, from: Array(source.utf8))
        }
    }

    @Test(
        "a missing value is named by what JSON has for it, and not by its Swift type",
        arguments: [
            ("/any", "a value"), ("/listed", "one of left, right"), ("/closed", "a string"),
            ("/inner", "a value"), ("/list", "an array"), ("/level", "a whole number"),
        ])
    func missing(pointer: String, expected: String) throws {
        enum Listed: String, Codable, CaseIterable { case left, right }
        enum Closed: String, Codable { case left, right }
        enum Level: Int, Codable { case low, high }
        struct Turn: Codable {
            var any: JSONValue
            var listed: Listed
            var closed: Closed
            var inner: Action.Inner
            var list: [Int]
            var level: Level
        }
        let whole = #"{"any":1,"listed":"left","closed":"left","inner":{"on":true},"list":[],"level":1}"#
        var value = try JSONValue(parsing: Array(whole.utf8))
        #expect(throws: Never.self) { try JSON.decode(Turn.self, from: value.text) }

        guard case .object(var members) = value else { return }
        members[String(pointer.dropFirst())] = nil
        value = .object(members)

        #expect(throws: JSONFault(.mismatch, at: JSONPointer(text: pointer)!, "is missing; expected \(expected)")) {
            try JSON.decode(Turn.self, from: value.text)
        }
    }

    @Test("a value that an enum does not have is refused, with the values that it has where they are listed")
    func enumeration() {
        enum Listed: String, Codable, CaseIterable { case left, right }
        enum Closed: String, Codable { case left, right }
        struct Turn: Codable { var listed: Listed?; var closed: Closed? }

        #expect(throws: JSONFault(.mismatch, at: "/listed", "expected one of left, right, found a string")) {
            try JSON.decode(Turn.self, from: Array(#"{"listed":"up"}"#.utf8))
        }
        #expect(throws: JSONFault(.mismatch, at: "/closed", "is not one of the values that are taken here")) {
            try JSON.decode(Turn.self, from: Array(#"{"closed":"up"}"#.utf8))
        }
    }

    @Test(
        "text that is not JSON is refused at its place",
        arguments: [
            (#"{"a":}"#, "/a", "expected a value, found '}' at byte 5"),
            (#"{"a":1"#, "", "expected ',' or '}', found the end of the text at byte 6"),
            (#"{"a":[1,]}"#, "/a/1", "expected a value, found ']' at byte 8"),
            (#"{'a':1}"#, "", "expected a key in quotes, found ''' at byte 1"),
            (#"{"a":01}"#, "/a", "a number must not begin with a zero, at byte 7"),
            (#"{"p\u0061\"\/":x}"#, "/pa\"~1", "expected a value, found 'x' at byte 15"),
            (#"{"a":1} x"#, "", "expected the end of the text, found 'x' at byte 8"),
            (#"{"a":NaN}"#, "/a", "expected a value, found 'N' at byte 5"),
            ("", "", "the text is empty; a JSON value was expected"),
            (
                #"{"a":["b\ud83d"]}"#, "/a/0",
                "an escape is half of a surrogate pair, at byte 8"
            ),
            (
                #"{"a":"\ud83d\u0041"}"#, "/a",
                "an escape is half of a surrogate pair, at byte 6"
            ),
            (
                #"{"a":"\ud83d\ude00\ude00"}"#, "/a",
                "an escape is half of a surrogate pair, at byte 18"
            ),
            (#"{"a":"\u12G4"}"#, "/a", "expected a hexadecimal digit, found 'G' at byte 10"),
            (#"{"a":"\u12"#, "/a", "expected a hexadecimal digit, found the end of the text at byte 10"),
            ("{\"a\":\"\u{1}\"}", "", "a control character in a string must be escaped, found byte 0x1 at byte 6"),
        ])
    func malformed(source: String, pointer: String, detail: String) {
        let fault = #expect(throws: JSONFault.self) { try JSONValue(parsing: Array(source.utf8)) }

        #expect(fault?.kind == .malformed)
        #expect(fault?.detail == detail)
        if !detail.contains("control") { #expect(fault?.pointer.description == pointer) }
    }

    @Test(
        "a number that no double holds is out of range", arguments: ["1e999", "-1e400", "1.8e308", "1\(Self.digits)"])
    func outOfRange(number: String) {
        let fault = #expect(throws: JSONFault.self) { try JSONValue(parsing: Array("{\"a\":\(number)}".utf8)) }

        #expect(fault?.kind == .numberOutOfRange)
        #expect(fault?.pointer.description == "/a")
        #expect(
            fault?.detail
                == "the number is out of the range of 64-bit floating point, read at byte \(5 + number.utf8.count)")
    }

    private static let digits = String(repeating: "0", count: 400)

    @Test(
        "a whole number beyond 64 bits is a double, as in JavaScript",
        arguments: [
            ("100000000000000000000", 1e20), ("-100000000000000000000", -1e20), ("18446744073709552000", 0x1p64),
            ("-9223372036854775809", -0x1p63), ("99999999999999999999e2", 1e22), ("0.99999999999999999999", 1),
            ("1e0000000000000000000020", 1e20),
        ])
    func wide(number: String, value: Double) throws {
        let text = #"{"99999999999999999999\"":[\#(number),"\\99999999999999999999",\#(number)],"b":\#(number)}"#

        let parsed = try JSONValue(parsing: Array(text.utf8))

        #expect(parsed[pointer: "/b"] == .double(value))
        #expect(parsed[pointer: "/99999999999999999999\"/0"] == .double(value))
        #expect(parsed[pointer: "/99999999999999999999\"/1"] == .string("\\99999999999999999999"))
        #expect(parsed[pointer: "/99999999999999999999\"/2"] == .double(value))
        #expect(try JSONValue(parsing: parsed.text) == parsed)
        #expect(try JSONValue(parsing: Array("18446744073709551615".utf8)) != .double(0x1p64))
    }

    @Test("invalid UTF-8 is refused with its byte")
    func invalidUTF8() {
        let fault = #expect(throws: JSONFault.self) {
            try JSONValue(parsing: Array(#"{"a":""#.utf8) + [0xFF, 0x22, 0x7D])
        }

        #expect(fault?.detail == "byte 6 is not valid UTF-8")
    }

    @Test("a key that occurs twice is refused, in small objects and in large ones")
    func duplicates() {
        let many = (0..<40).map { "\"k\($0)\":1" }.joined(separator: ",")
        for source in [#"{"b":{"a":1,"a":2}}"#, "{\"b\":{\(many),\"a\":1,\"a\":2}}", #"{"b":{"a":1,"\u0061":2}}"#] {
            let fault = #expect(throws: JSONFault.self) { try JSONValue(parsing: Array(source.utf8)) }

            #expect(fault?.kind == .duplicateKey)
            #expect(fault?.pointer.description == "/b/a")
        }
        #expect(throws: Never.self) { try JSONValue(parsing: Array("{\"e\u{301}\":1,\"\u{e9}\":2}".utf8)) }
    }

    @Test(
        "nesting is taken up to the limit and not beyond",
        arguments: [(63, false), (64, false), (65, true), (2000, true)])
    func depth(levels: Int, isRefused: Bool) {
        let source = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        let fault: JSONFault?
        do {
            _ = try JSONValue(parsing: Array(source.utf8), depthMax: 64)
            fault = nil
        } catch { fault = error }

        #expect((fault?.kind == .tooDeep) == isRefused)
    }

    @Test("a parser serves the next text after a refused one")
    func reuse() throws {
        #expect(throws: JSONFault.self) { try JSONValue(parsing: Array("[".utf8)) }
        #expect(try JSONValue(parsing: Array("[1]".utf8)) == .array([.integer(1)]))
    }
}

@Suite("Pointers")
struct PointerTests {
    @Test("tokens are unescaped, and escaped again", arguments: ["", "/a", "/a~1b/~0", "/", "/a//b"])
    func roundTrip(text: String) {
        #expect(JSONPointer(text: text)?.description == text)
    }

    @Test("text that is no pointer is refused", arguments: ["a", "/~", "/~2", "#/a"])
    func refused(text: String) {
        #expect(JSONPointer(text: text) == nil)
    }

    @Test("a text has at most 1,000 tokens")
    func manyTokens() {
        let text = String(repeating: "/", count: 1000)

        #expect(JSONPointer(text: text)?.tokens.count == 1000)
        #expect(JSONPointer(text: text + "/") == nil)
        #expect(JSONPointer.expectation(of: text + "/") == "expected a JSON Pointer with at most 1000 parts")
    }

    @Test("a sentence shows 200 characters of a pointer")
    func shown() {
        #expect(JSONPointer([String(repeating: "x", count: 199)]).shown == "/" + String(repeating: "x", count: 199))
        #expect(JSONPointer([String(repeating: "x", count: 200)]).shown.utf8.count == 203)
    }

    @Test("two spellings of one letter are two pointers")
    func bytes() {
        #expect(JSONPointer(["e\u{301}"]) != JSONPointer(["\u{e9}"]))
    }

    @Test(
        "an array index has no leading zero",
        arguments: [("0", 0), ("10", 10), ("01", nil), ("-1", nil), ("", nil), ("+1", nil)])
    func index(token: String, expected: Int?) {
        #expect(JSONPointer.index(token) == expected)
    }
}
