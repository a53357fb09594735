import StateJSON
import TestSupport
import Testing

@testable import Queries
@testable import StateStore

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
        return try query.answer(to: texts(json)).map { String(decoding: $0, as: UTF8.self) }
    }

    private func keys(
        _ json: String = tasks, filter: String? = nil, sort: String? = nil, window: Range<Int> = 0..<100
    ) throws -> [String] {
        let text = try #require(try answer(json, filter: filter, sort: sort, window: window, fields: "/none"))
        return Self.keys(in: try JSONValue(parsing: Array(text.utf8)))
    }

    private static func keys(in answer: JSONValue) -> [String] {
        guard case .array(let members)? = answer[pointer: "/members"] else { return [] }
        return members.map { if case .string(let key)? = $0[pointer: "/key"] { key } else { "?" } }
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

    @Test(
        "a member is read as far as the filter and the order look at it",
        arguments: [
            ("@.a == 1", ["a"]), ("!@['a','b'] || @.c.d[0] > @.e", ["a", "b", "c", "e"]),
            ("count(@.a[*]) > 1 && match(@.b, 'x')", ["a", "b"]), ("@.a[?@.z == 1]", ["a"]), ("@..a", nil),
            ("@ == 1", nil), ("length(@) > 1 && @.a", nil), ("@[0]", nil), ("@.*", nil), ("@[?@.a]", nil),
        ] as [(String, [String]?)])
    func names(filter: String, expected: [String]?) throws {
        var parser = JSONPathParser(filter)
        #expect(try parser.wholeCondition().names == expected)
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
        #expect(throws: NoMembers.self) { try answer(json) }
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
            ("@[-9223372036854775808]", 2, "whole number"), ("@[?@[0:-9223372036854775808]]", 7, "whole number"),
            ("search(@.a, '\\\\p{L}{100}')", 0, "patterns"),
            ("@.a && match(@.b, '(\\\\p{L}{9}){9}')", 7, "patterns"),
        ])
    func faults(filter: String, offset: Int, hint: String) {
        let fault = #expect(throws: MemberQuery.Fault.self) { try answer(filter: filter) }
        #expect(fault?.offset == offset)
        #expect(fault?.detail.contains(hint) == true, "\(fault?.detail ?? "")")
        #expect(fault?.parameter == "filter")
    }

    @Test("a sort and fields are pointers", arguments: ["due", ",", "/a,", "/a,b", "/~2", "--/a"])
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
        let parts = { (count: Int) in String(repeating: "/a", count: count) }
        #expect(throws: Never.self) { try answer(sort: parts(32), fields: parts(32)) }
        #expect(throws: MemberQuery.Fault.self) { try answer(fields: "/a," + parts(33)) }
        let fault = #expect(throws: MemberQuery.Fault.self) { try answer(sort: many(17)) }
        #expect(fault?.offset == 48)
        #expect(throws: MemberQuery.Fault.self) { try answer(fields: many(17)) }
    }

    /// The keys on all pages, each of which begins behind the one before.
    private func pages(_ json: String, sort: String?, limit: Int, _ order: MemberOrder?) throws -> [[String]] {
        var (pages, after): ([[String]], String?) = ([], nil)
        repeat {
            let query = try MemberQuery(
                filter: nil, sort: sort, window: 0..<limit, fields: nil, wantsCount: false, after: after)
            let answer = try JSONValue(parsing: try #require(try query.answer(to: texts(json), order)))
            pages.append(Self.keys(in: answer))
            if case .string(let next)? = answer[pointer: "/next"] { after = next } else { after = nil }
        } while after != nil && pages.count < 20
        return pages
    }

    @Test("pages behind each other have every member once", arguments: [nil, "/due", "-/due", "/owner,-/due", "/none"])
    func paging(sort: String?) throws {
        let all = try keys(sort: sort)

        for limit in 1...5 {
            for order in [nil, { .text($0) }] as [MemberOrder?] {
                let found = try pages(Self.tasks, sort: sort, limit: limit, order)
                #expect(found.flatMap { $0 } == all)
                #expect(found.count == (5 + limit - 1) / limit)
            }
        }
        let mixed =
            #"[{"a":[]},{"a":"b"},{"a":1e300},{"a":true},{"a":-2},{"a":null},{},{"a":{}},{"a":18446744073709551615}]"#
        #expect(try pages(mixed, sort: "/a", limit: 2, nil).flatMap { $0 } == keys(mixed, sort: "/a"))
    }

    @Test("a page goes on behind a member that has gone, and counts all members")
    func anchor() throws {
        let page = { (after: String?) in
            try MemberQuery(
                filter: "@.due", sort: "/due", window: 0..<2, fields: "/none", wantsCount: true, after: after)
        }
        let order: MemberOrder = { .text($0) }
        let first = try JSONValue(parsing: try #require(try page(nil).answer(to: texts(Self.tasks), order)))
        guard case .string(let next)? = first[pointer: "/next"] else { throw NoMembers() }
        // The last member of the first page has gone, and one with its values has come.
        let later = Self.tasks.replacing("\"t5\"", with: "\"t51\"")

        let second = try page(next).answer(to: texts(later), order)

        let two = try #require(JSONNumber(.integer(2)))
        let last = Anchor(values: [.number(two)], name: "t3", number: 0)
        let text = try #require(last.text(query: try hash(of: next)))
        #expect(
            second.map { String(decoding: $0, as: UTF8.self) }
                == #"{"members":[{"key":"t51","value":{}},{"key":"t3","value":{}}],"next":""# + text + #"","count":4}"#)
    }

    private func hash(of next: String) throws -> String {
        let parts = try JSONValue(parsing: try #require(Base64URL.bytes(Array(next.utf8))))
        guard case .string(let hash)? = parts[pointer: "/0"] else { throw NoMembers() }
        return hash
    }

    @Test(
        "the next of another query, or of nobody, is a fault", arguments: ["", "x", "WzFd", "é", "W10", "eyJhIjoxfQ"])
    func foreign(after: String) throws {
        let make = { (filter: String?, sort: String?, after: String?) in
            try MemberQuery(filter: filter, sort: sort, window: 0..<1, fields: nil, wantsCount: false, after: after)
        }
        #expect(throws: MemberQuery.Fault.self) { try make(nil, nil, after) }
        let answer = try JSONValue(parsing: try #require(try make(nil, "/due", nil).answer(to: texts(Self.tasks))))
        guard case .string(let next)? = answer[pointer: "/next"] else { throw NoMembers() }

        let fault = #expect(throws: MemberQuery.Fault.self) { try make(nil, "-/due", next) }
        #expect(fault?.parameter == "after")
        #expect(throws: MemberQuery.Fault.self) { try make("@.due", "/due", next) }
        #expect(throws: Never.self) { try make(nil, "/due", next) }
    }

    @Test("an explanation counts the members, those that match, and the steps")
    func explanation() throws {
        let query = try MemberQuery(
            filter: "@.owner == 'bob'", sort: nil, window: 0..<1, fields: "/none", wantsCount: false, explains: true)
        let answer = try JSONValue(parsing: try #require(try query.answer(to: texts(Self.tasks))))

        #expect(answer[pointer: "/explain/members"] == .integer(5))
        #expect(answer[pointer: "/explain/matched"] == .integer(1))
        #expect(answer[pointer: "/explain/steps"] == .integer(15))
        #expect(answer[pointer: "/explain/milliseconds"] != nil)
        #expect(try query.kept(of: texts(Self.tasks), { .text($0) }) == nil)
    }

    @Test("the patterns of a filter have a bound together, and those of the data cost what they take to compile")
    func patterns() throws {
        let many = { (count: Int, pattern: String) in
            Array(repeating: "match(@.name, '\(pattern)')", count: count).joined(separator: " || ")
        }
        #expect(throws: Never.self) { try answer(filter: many(32, "a.*b[c-f]+")) }
        #expect(throws: Never.self) { try answer(filter: "match(@.name, '[\\\\p{L} ]{1,8}')") }
        for tooMany in [many(33, "a"), many(30, "[\\\\p{L} ]{1,8}")] {
            let fault = #expect(throws: MemberQuery.Fault.self) { try answer(filter: tooMany) }
            #expect(fault?.detail.contains("patterns") == true, "\(fault?.detail ?? "")")
        }

        let ofData = try MemberQuery(
            filter: "match(@.name, @.p)", sort: nil, window: 0..<9, fields: nil, wantsCount: false)
        let members = { (pattern: String) in #"[{"name":"ann","p":"\#(pattern)"},{"name":"ann","p":"a.*"}]"# }
        let found = try ofData.answer(to: texts(members(#"\\p{L}{100}"#)))
        #expect(found.map { String(decoding: $0, as: UTF8.self) }?.contains(#""key":"1""#) == true)
        #expect(throws: QueryStop.self) {
            try ofData.answer(to: texts(members(#"\\p{L}{8}"#)), stepsMax: 5_000)
        }
        #expect(throws: Never.self) { try ofData.answer(to: texts(members("a")), stepsMax: 5_000) }
    }

    @Test("a match that could take minutes is refused, and a shorter one is not")
    func matches() throws {
        let query = try MemberQuery(
            filter: "search(@.t, '1[01]{500}')", sort: nil, window: 0..<9, fields: "/none", wantsCount: false)
        let text = { (count: Int) in #"[{"t":"\#(String(repeating: "01", count: count))"}]"# }
        #expect(throws: QueryStop.self) { try query.answer(to: texts(text(1_000_000))) }
        #expect(throws: Never.self) { try query.answer(to: texts(text(20_000))) }
    }

    @Test("to compare arrays, objects and long texts costs what is compared")
    func comparisons() throws {
        let query = try MemberQuery(
            filter: "@.a == @.b", sort: nil, window: 0..<9, fields: "/none", wantsCount: false)
        let array = "[" + Array(repeating: "1", count: 1000).joined(separator: ",") + "]"
        let object = "{" + (0..<1000).map { #""\#($0)":[]"# }.joined(separator: ",") + "}"
        let text = "\"" + String(repeating: "x", count: 64_000) + "\""
        for value in [array, object, text, "[[\(array)]]"] {
            let members = texts(#"[{"a":\#(value),"b":\#(value)}]"#)
            #expect(throws: QueryStop.self) { try query.answer(to: members, stepsMax: 900) }
            let found = try query.answer(to: members).map { String(decoding: $0, as: UTF8.self) }
            #expect(found == #"{"members":[{"key":"0","value":{}}]}"#)
        }
        // An order of texts costs as much.
        let less = try MemberQuery(filter: "@.a < @.b", sort: nil, window: 0..<9, fields: nil, wantsCount: false)
        #expect(throws: QueryStop.self) {
            try less.answer(to: texts(#"[{"a":\#(text),"b":\#(text)}]"#), stepsMax: 900)
        }

        let different = texts(#"[{"a":[1,{"x":[2]}],"b":[1,{"x":[3]}]},{"a":{"x":1,"y":2},"b":{"y":2,"x":1}}]"#)
        let found = try query.answer(to: different).map { String(decoding: $0, as: UTF8.self) }
        #expect(found == #"{"members":[{"key":"1","value":{}}]}"#)
    }

    @Test("a query says what memory it takes: its text many times")
    func memory() throws {
        func bytesCount(_ filter: String) throws -> Int {
            try MemberQuery(filter: filter, sort: nil, window: 0..<9, fields: nil, wantsCount: false).bytesCount
        }
        let long = "@.a == '" + String(repeating: "x", count: 4000) + "'"
        #expect(try bytesCount(long) > 100_000)
    }

    @Test("numbers have one order, also where a double has not all of their digits")
    func numbers() {
        let spelled = [
            "9007199254740991", "9007199254740992", "9007199254740992.5", "9007199254740993", "9007199254740994",
        ]
        let others = [
            "-9007199254740993.5", "-9007199254740993", "18446744073709551615", "18446744073709551615.5", "1e30",
            "1e300",
        ]
        let numbers = (spelled + others + ["0.5", "0"]).compactMap { text in
            (try? JSONValue(parsing: Array(text.utf8))).flatMap(JSONNumber.init)
        }
        #expect(numbers.count == spelled.count + others.count + 2)
        for a in numbers {
            for b in numbers {
                #expect(!(a < b && b < a))
                for c in numbers {
                    #expect(!(a < b && b < c) || a < c)
                    #expect(!(a == b && b == c) || a == c)
                }
            }
        }
    }

    @Test("a path that gathers too many values ends before they take memory")
    func gathered() throws {
        let chain = String(repeating: #"{"a":"#, count: 180) + "1" + String(repeating: "}", count: 180)
        let query = try MemberQuery(
            filter: "count(@..*..*..*) > 0", sort: nil, window: 0..<1, fields: nil, wantsCount: false)
        let pairs = String(repeating: chain + ",", count: 4) + chain
        #expect(throws: QueryStop.self) { try query.answer(to: texts("[[\(pairs)]]")) }
    }

    @Test("a filter that looks at more values than it may ends")
    func costs() throws {
        let chain = String(repeating: #"{"a":"#, count: 300) + "1" + String(repeating: "}", count: 300)
        let query = try MemberQuery(
            filter: "@..[?@..[?@..[?@..[?@.b]]]]", sort: nil, window: 0..<1, fields: nil, wantsCount: false)

        #expect(throws: QueryStop.self) { try query.answer(to: texts(chain), stepsMax: 100_000) }
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
