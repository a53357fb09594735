import Foundation
import StateJSON
import Synchronization
import Testing

@testable import Queries
@testable import StateStore

/// What an evaluation has asked on its way.
private final class Asked: Sendable {
    private struct State {
        var (count, bytes, bytesMax) = (0, 0, 0)
    }

    private let state = Mutex(State())

    var count: Int { state.withLock(\.count) }
    var bytesMax: Int { state.withLock(\.bytesMax) }

    func work(secondsEach: Double = 0, wantedCount: Int = .max, bytesMax: Int = .max) -> QueryWork {
        var work = QueryWork()
        work.processorTime = { Duration.seconds(secondsEach) * Double(self.count) }
        work.isWanted = { _ in
            self.state.withLock { state in
                state.count += 1
                return state.count <= wantedCount
            }
        }
        work.memory.count = { more, _ in
            self.state.withLock { state in
                guard state.bytes + more <= bytesMax else { return .client }
                state.bytes += more
                state.bytesMax = max(state.bytesMax, state.bytes)
                return nil
            }
        }
        return work
    }
}

@Suite("Bounds of an evaluation")
struct QueryBoundsTests {
    private static func query(
        _ filter: String? = nil, sort: String? = nil, window: Range<Int> = 0..<9, fields: String? = "/none",
        after: String? = nil
    ) throws -> MemberQuery {
        try MemberQuery(filter: filter, sort: sort, window: window, fields: fields, wantsCount: true, after: after)
    }

    private static func array(_ count: Int, _ element: (Int) -> String) -> [UInt8] {
        Array("[\((0..<count).map(element).joined(separator: ","))]".utf8)
    }

    @Test(
        "members, the names in them, their values and the keys of a sort count",
        arguments: [
            (nil, nil, Self.array(1000) { "\($0)" }, 1000),
            (
                "@.a", nil,
                Self.array(1) { _ in "{" + (0..<8000).map { #""n\#($0)":0"# }.joined(separator: ",") + "}" }, 1000
            ),
            (
                "length(@) > 1", nil,
                Self.array(1) { _ in "[\(Array(repeating: "[]", count: 1000).joined(separator: ","))]" }, 1000
            ),
            (nil, (0..<16).map { "/k\($0)" }.joined(separator: ","), Self.array(100) { _ in "{}" }, 1700),
        ] as [(String?, String?, [UInt8], Int)])
    func counts(filter: String?, sort: String?, members: [UInt8], least: Int) throws {
        let query = try Self.query(filter, sort: sort)

        #expect(throws: QueryStop.values) { try query.answer(to: texts(members), stepsMax: least - 1) }
        #expect(throws: Never.self) { try query.answer(to: texts(members), stepsMax: 2 * least + 10) }
    }

    @Test("many names among many members count by their product")
    func manyNames() throws {
        let names = (0..<900).map { "@.n\($0)" }.joined(separator: " || ")
        let member = "[{" + (0..<2000).map { #""m\#($0)":0"# }.joined(separator: ",") + #","n899":1}]"#

        #expect(throws: QueryStop.values) { try Self.query(names).answer(to: texts(member), stepsMax: 200_000) }
        let answer = try Self.query(names).answer(to: texts(member), stepsMax: 250_000)

        #expect(
            answer.map { String(decoding: $0, as: UTF8.self) } == #"{"members":[{"key":"0","value":{}}],"count":1}"#)
    }

    @Test("an evaluation ends after two seconds of its thread's processor time, and before it with an answer")
    func time() throws {
        let members = texts(Self.array(5000) { "\($0)" })
        let (slow, quick) = (Asked(), Asked())

        QueryWork.$current.withValue(slow.work(secondsEach: 1.5)) {
            #expect(throws: QueryStop.time) { try Self.query().answer(to: members) }
        }
        QueryWork.$current.withValue(quick.work(secondsEach: 0.4)) {
            #expect(throws: Never.self) { try Self.query().answer(to: members) }
        }
        #expect(slow.count == 2)
        #expect(quick.count == 4)
    }

    @Test("an evaluation that nobody waits for ends within a thousand members", arguments: [nil, "/a"] as [String?])
    func abandoned(sort: String?) throws {
        let object = JSONTree(
            .object((0..<5000).reduce(into: JSONObject()) { $0["\($1)"] = .integer(Int64($1)) })
        ).text
        let query = try Self.query("@ > 1", sort: sort)
        let order: MemberOrder = { JSONTree.key($0) }
        let asked = Asked()

        QueryWork.$current.withValue(asked.work(wantedCount: 1)) {
            #expect(throws: QueryStop.abandoned) { try query.answer(to: texts(object), order) }
            #expect(throws: QueryStop.abandoned) { try query.kept(of: texts(object), order) }
        }
        #expect(asked.count == 3)
    }

    @Test("a sort holds the members of its window, in whichever order they come, and not all", arguments: 0..<3)
    func sorts(direction: Int) throws {
        let count = 20_000
        let members = Self.array(count) { number in
            #"{"a":\#([number, count - number, number * 7919 % 5000][direction])}"#
        }
        let asked = Asked()
        let most = members.count + 600 * 200

        try QueryWork.$current.withValue(asked.work(bytesMax: most)) {
            _ = try Self.query(sort: "/a", window: 100..<110).answer(to: texts(members))
            #expect(throws: QueryStop.memory(.client)) {
                try Self.query(sort: "/a", window: 15_000..<15_010).answer(to: texts(members))
            }
        }
        #expect(asked.bytesMax > members.count)
    }

    @Test("the pages of a sort have each member once, in the order of the whole", arguments: 0..<6)
    func pages(seed: Int) throws {
        var generator = SystemRandomNumberGenerator()
        let range = Int64(1) << (2 * seed)
        var object = JSONObject()
        for number in 0..<2000 {
            object["\(number)"] = [
                "a": .integer(.random(in: 0..<range, using: &generator)), "n": .integer(Int64(number)),
            ]
        }
        let isObject = seed % 2 == 0
        let json = isObject ? JSONValue.object(object).text : JSONValue.array(object.members.map(\.value)).text
        func keys(_ query: MemberQuery) throws -> (keys: [JSONValue], next: String?) {
            let answer = try JSONValue(parsing: try #require(try query.answer(to: texts(json))))
            guard case .array(let members)? = answer[pointer: "/members"] else { throw NoMembers() }
            let next: String? = if case .string(let next)? = answer[pointer: "/next"] { next } else { nil }
            return (members.compactMap { $0[pointer: "/key"] }, next)
        }
        let sort = seed < 3 ? "-/a" : "/a"
        let whole = try keys(Self.query(sort: sort, window: 0..<2000)).keys

        var (found, next): ([JSONValue], String?) = ([], nil)
        repeat {
            let page = try keys(Self.query(sort: sort, window: 0..<90, after: next))
            (found, next) = (found + page.keys, page.next)
        } while next != nil
        #expect(found == whole)
        for start in [0, 1, 300, 1990] {
            #expect(
                try keys(Self.query(sort: sort, window: start..<(start + 50))).keys == Array(whole[start...].prefix(50))
            )
        }
    }

    @Test("an answer ends where it would be too long, and its next leads on")
    func pagesOfBytes() throws {
        let text = String(repeating: "x", count: 200_000)
        let members = texts(Self.array(12) { #"{"n":\#($0),"t":"\#(text)"}"# })
        for sort in [nil, "-/n"] {
            var (count, next): (Int, String?) = (0, nil)
            repeat {
                let query = try Self.query(sort: sort, window: 0..<100, fields: nil, after: next)
                let bytes = try #require(try query.answer(to: members))
                let answer = try JSONValue(parsing: bytes)
                #expect(bytes.count < MemberQuery.answerBytesMax + 1000)
                guard case .array(let page)? = answer[pointer: "/members"] else { throw NoMembers() }
                count += page.count
                next = if case .string(let text)? = answer[pointer: "/next"] { text } else { nil }
            } while next != nil
            #expect(count == 12)
        }
        // A member that is longer comes alone, and one by whose text no page goes on is not left out in silence.
        let long = texts("[\"\(String(repeating: text, count: 6))\",1]")
        #expect(try Self.query(fields: nil).answer(to: long)?.count ?? 0 > 1_200_000)
        #expect(throws: QueryStop.page) { try Self.query(sort: "/t", fields: nil).answer(to: members) }
    }

    @Test("a pattern in the data has at most 1,024 bytes")
    func longPatterns() throws {
        func matches(_ count: Int) throws -> Bool {
            let text = String(repeating: "x", count: count)
            let answer = try Self.query("match(@.t, @.p)").answer(to: texts(#"[{"t":"\#(text)","p":"\#(text)"}]"#))
            return answer.map { String(decoding: $0, as: UTF8.self) }?.hasSuffix(#""count":1}"#) ?? false
        }
        #expect(try matches(1024))
        #expect(try !matches(1025))
    }

    @Test("on a thread that serves others nothing is compiled, and a match counts what it takes")
    func quick() throws {
        let order: MemberOrder = { JSONTree.key($0) }
        let query = try Self.query("match(@.t, @.p)")
        let kept = try #require(try query.kept(of: texts(#"{"x":{"t":"a","p":"a"}}"#), order))
        func change(_ pattern: String) -> [ChangedMember] {
            [ChangedMember(name: JSONKey("x"), order: .text("x"), value: ["t": "b", "p": .string(pattern)])]
        }
        #expect(throws: QueryStop.elsewhere) { try kept.update(change("quick[bcd]{3}"), stepsMax: 10_000) }
        #expect(try kept.update(change("quick[bcd]{3}"), stepsMax: nil))
        #expect(try !kept.update(change("quick[bcd]{3}"), stepsMax: 10_000))

        let long = try Self.query("search(@.t, '1[01]{500}')")
        let value: JSONValue = ["t": .string(String(repeating: "01", count: 1000))]
        let other = try #require(try long.kept(of: texts(#"{"x":{}}"#), order))
        let members = [ChangedMember(name: JSONKey("x"), order: .text("x"), value: value)]
        #expect(throws: QueryStop.values) { try other.update(members, stepsMax: 10_000) }
        #expect(try other.update(members, stepsMax: nil))
    }

    @Test("compiled patterns are kept by their bytes, and not too many of them")
    func cache() throws {
        let patterns = CompiledPatterns()
        func isKnown(_ text: String) throws -> Bool {
            let expression = try #require(IRegexp(text, isWhole: false))
            return (try? patterns.compiled(expression, isQuick: true)) != nil
        }
        func compile(_ text: String) throws {
            _ = try patterns.compiled(try #require(IRegexp(text, isWhole: false)), isQuick: false)
        }
        try compile("\u{E9}")
        #expect(try isKnown("\u{E9}"))
        #expect(try !isKnown("e\u{301}"))
        #expect(IRegexp("a", isWhole: false) != IRegexp("a", isWhole: true))
        for number in 0..<1000 { try compile("p\(number)") }
        let knownCount = try (0..<1000).count { try isKnown("p\($0)") }
        #expect((1...CompiledPatterns.countMax).contains(knownCount))
        #expect(try isKnown("p999"))
    }
}

@Suite("Spellings of a query")
struct QuerySpellingTests {
    private func members(_ text: String, filter: String? = nil, sort: String? = nil) throws -> String? {
        let query = try MemberQuery(filter: filter, sort: sort, window: 0..<10, fields: nil, wantsCount: false)
        return try query.answered(to: { try $0(Array(text.utf8)) }, { JSONTree.key($0) })
            .map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "a pattern that cannot be read is refused with what to write",
        arguments: [
            #"match(@.t, '\\d')"#, #"match(@.t, "(?i)a")"#, "search(@.t, 'C++')", "search(@.t, '[')",
            #"@.t == 'a' || match(@.t, '\\w+')"#, "match(@.t, 5)", "match(@.t, 'a{5,2}')",
            "match(@.t, 'a)(b')", "search(@.t, '(a')",
        ])
    func patterns(filter: String) {
        let fault = #expect(throws: MemberQuery.Fault.self) { try members(#"{"x":{"t":"a"}}"#, filter: filter) }
        #expect(fault?.parameter == "filter")
        #expect(fault?.detail.contains("RFC 9485") == true)
        #expect(
            fault?.offset
                == filter.distance(
                    from: filter.startIndex,
                    to: filter.range(of: "(?:match|search)\\(", options: .regularExpression)!.lowerBound))
    }

    @Test(
        "members are sorted by themselves, and by a name with a comma",
        arguments: [
            (#"{"a":5,"b":9,"c":7}"#, "", ["a", "c", "b"]), (#"{"a":5,"b":9,"c":7}"#, "-", ["b", "c", "a"]),
            (#"{"a":{"x,y":2},"b":{"x,y":1}}"#, #"["/x,y"]"#, ["b", "a"]),
            (#"{"a":{"x,y":2,"z":0},"b":{"x,y":1,"z":1}}"#, #"["/z","-/x,y"]"#, ["a", "b"]),
        ])
    func sorting(text: String, sort: String, keys: [String]) throws {
        let answer = try JSONValue(parsing: Array(try #require(try members(text, sort: sort)).utf8), depthMax: 10)
        guard case .array(let members)? = answer[pointer: JSONPointer(["members"])] else { throw NoMembers() }
        #expect(members.map { $0[pointer: JSONPointer(["key"])] } == keys.map { .string($0) })
    }

    @Test(
        "a list that cannot be read is refused",
        arguments: ["/a,", ",", "[", "[5]", #"["a"]"#, #"["/a",[]]"#, #"{"a":1}"#, "/a,[\"/b\"]"])
    func lists(sort: String) {
        #expect(throws: MemberQuery.Fault.self) { try members("{}", sort: sort) }
    }
}
