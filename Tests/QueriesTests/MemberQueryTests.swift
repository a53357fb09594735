import StateJSON
import TestSupport
import Testing

@testable import Queries

@Suite("Queries on members")
struct MemberQueryTests {
    static let tasks = """
        {"t1":{"owner":"ann","done":false,"due":3},"t2":{"owner":"bob","done":false,"due":1},\
        "t3":{"owner":"ann","done":true,"due":2},"t4":{"owner":"ann","done":false},"t5":{"owner":"ann","done":false,"due":1}}
        """

    private func answer(
        _ json: String = tasks, filter: String? = nil, sort: String? = nil, window: Range<Int> = 0..<100,
        fields: String? = nil, count: Bool = false
    ) throws -> String? {
        let query = try MemberQuery(filter: filter, sort: sort, window: window, fields: fields, wantsCount: count)
        return try query.answer(to: Array(json.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    private func keys(
        _ json: String = tasks, filter: String? = nil, sort: String? = nil, window: Range<Int> = 0..<100
    ) throws -> [String] {
        let text = try #require(try answer(json, filter: filter, sort: sort, window: window, fields: "/none"))
        return try JSONPath("$.members[*].key").values(in: JSONValue(parsing: Array(text.utf8))).map { value in
            if case .string(let key) = value { key } else { "?" }
        }
    }

    @Test(
        "a filter lets members through",
        arguments: [
            ("@.owner == 'ann' && @.done == false", ["t1", "t4", "t5"]), ("@.due", ["t1", "t2", "t3", "t5"]),
            ("!@.due", ["t4"]), ("@.due >= 2 || @.owner == \"bob\"", ["t1", "t2", "t3"]),
            (" match(@.owner, 'a.*') && @.due < 2 ", ["t5"]), ("length(@) == 2", ["t4"]),
            ("@['due'] != 1", ["t1", "t3", "t4"]),
        ])
    func filters(filter: String, expected: [String]) throws {
        #expect(try keys(filter: filter) == expected)
    }

    @Test(
        "members are sorted by pointers, missing values come last, and equals keep their order",
        arguments: [
            ("/due", ["t2", "t5", "t3", "t1", "t4"]), ("-/due", ["t1", "t3", "t2", "t5", "t4"]),
            ("/owner,-/due", ["t1", "t3", "t5", "t4", "t2"]), ("/done", ["t1", "t2", "t4", "t5", "t3"]),
        ])
    func sorts(sort: String, expected: [String]) throws {
        #expect(try keys(sort: sort) == expected)
    }

    @Test("values of all kinds have one order, and numbers are compared exactly")
    func mixed() throws {
        let json =
            #"[{"a":[]},{"a":"b"},{"a":9007199254740993},{"a":true},{"a":9007199254740992},{"a":null},{},{"a":false},{"a":"B"},{"a":{}},{"a":1.5}]"#

        #expect(try keys(json, sort: "/a") == ["5", "7", "3", "10", "4", "2", "8", "1", "0", "9", "6"])
    }

    @Test("a window is a part of the order, and lies outside of it without a fault")
    func windows() throws {
        #expect(try keys(sort: "/due", window: 1..<3) == ["t5", "t3"])
        #expect(try keys(window: 4..<9) == ["t5"])
        #expect(try keys(window: 9..<12) == [])
    }

    @Test("the answer has whole members, or fields in their nesting, and the count before the window")
    func answers() throws {
        let json = #"{"a":{"x":{"y":1,"z":2},"w":[3]},"b":4}"#

        #expect(
            try answer(json, window: 1..<2, count: true) == #"{"members":[{"key":"b","value":4}],"count":2}"#)
        #expect(
            try answer(json, fields: "/x/y,/w,/none")
                == #"{"members":[{"key":"a","value":{"x":{"y":1},"w":[3]}},{"key":"b","value":{}}]}"#)
        #expect(try answer("[1,2]", filter: "@ > 1") == #"{"members":[{"key":"1","value":2}]}"#)
    }

    @Test("a value without members has no answer", arguments: ["1", "\"a\"", "null", "true"])
    func scalars(json: String) throws {
        #expect(try answer(json) == nil)
    }

    @Test(
        "a fault has its place and a hint",
        arguments: [
            ("@.a = 1", 4, "equality is =="), ("@.a == 1 and @.b", 9, "write &&"), ("@.a == ann", 7, "'ann'"),
            ("owner == 'ann'", 0, "@.owner"), ("@.a ==", 6, "expected @"), ("$.a", 0, "@ is the member"),
            ("@..a == 1", 0, "one place"), ("1", 0, "alone"), ("length(@.a)", 0, "compare"),
            ("@.é.ü == = 1", 9, "expected @"),
            ("has(@.a)", 0, "no function has"), ("@.a == 01", 7, "number"), ("@.a == 'x", 7, "no end"),
            ("not @.a", 0, "!("), ("@.a == 1 & @.b", 9, "write &&"), ("match(@.a) == 1", 0, "two arguments"),
        ])
    func faults(filter: String, offset: Int, hint: String) {
        let fault = #expect(throws: MemberQuery.Fault.self) { try answer(filter: filter) }
        #expect(fault?.offset == offset)
        #expect(fault?.detail.contains(hint) == true, "\(fault?.detail ?? "")")
        #expect(fault?.parameter == "filter")
    }

    @Test("a sort and fields are pointers", arguments: ["due", "", "/a,", "/a,b", "/~2", "--/a"])
    func pointers(text: String) {
        #expect(throws: MemberQuery.Fault.self) { try answer(sort: text) }
        if !text.hasPrefix("-") { #expect(throws: MemberQuery.Fault.self) { try answer(fields: text) } }
    }

    @Test(
        "fields that lie in each other are in the answer once, whatever their order",
        arguments: ["/a,/a/0", "/a/0/b,/a"])
    func overlaps(fields: String) throws {
        #expect(
            try answer(#"[{"a":[{"b":1,"c":2}],"d":3}]"#, fields: fields)
                == #"{"members":[{"key":"0","value":{"a":[{"b":1,"c":2}]}}]}"#)
    }

    @Test("sort and fields have a bound, which a member does not multiply")
    func pointersBound() throws {
        let many = { (count: Int) in Array(repeating: "/a", count: count).joined(separator: ",") }
        #expect(throws: Never.self) { try answer(sort: many(16), fields: many(16)) }
        let fault = #expect(throws: MemberQuery.Fault.self) { try answer(sort: many(17)) }
        #expect(fault?.offset == 48)
        #expect(throws: MemberQuery.Fault.self) { try answer(fields: many(17)) }
    }

    @Test("a path that gathers too many values ends before they take memory")
    func gathered() throws {
        let chain = String(repeating: #"{"a":"#, count: 180) + "1" + String(repeating: "}", count: 180)
        let query = try MemberQuery(
            filter: "count(@..*..*..*) > 0", sort: nil, window: 0..<1, fields: nil, wantsCount: false)
        let pairs = String(repeating: chain + ",", count: 4) + chain
        #expect(throws: QueryTooCostly.self) { try query.answer(to: Array("[[\(pairs)]]".utf8)) }
    }

    @Test("a filter that looks at more values than it may ends")
    func costs() throws {
        let chain = String(repeating: #"{"a":"#, count: 300) + "1" + String(repeating: "}", count: 300)
        let query = try MemberQuery(
            filter: "@..[?@..[?@..[?@..[?@.b]]]]", sort: nil, window: 0..<1, fields: nil, wantsCount: false)

        #expect(throws: QueryTooCostly.self) { try query.answer(to: Array(chain.utf8), stepsMax: 100_000) }
    }

    @Test("parentheses, negations and calls nest no deeper than a bound")
    func nesting() {
        for text in [
            String(repeating: "(", count: 5000) + "@.a" + String(repeating: ")", count: 5000),
            String(repeating: "@[?", count: 5000) + "@.a" + String(repeating: "]", count: 5000),
            String(repeating: "length(value(", count: 5000) + "@" + String(repeating: "))", count: 5000) + " > 1",
        ] {
            let fault = #expect(throws: MemberQuery.Fault.self) { try answer(filter: text) }
            #expect(fault?.detail.contains("deeper") == true || fault?.detail.contains("path") == true)
        }
    }
}
