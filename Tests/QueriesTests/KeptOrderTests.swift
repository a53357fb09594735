import StateJSON
import Testing

@testable import Queries
@testable import StateStore

@Suite("Kept order")
struct KeptOrderTests {
    private static let filters = [nil, "@.a > 1", "@.b", "@.a == 'x' || @.a < 2", "!@.a"]
    private static let sorts = [nil, "/a", "-/a", "/b,-/a", "/none"]

    private static func value(using generator: inout some RandomNumberGenerator) -> JSONValue {
        var members = JSONObject()
        for name in ["a", "b", "c"] where Int.random(in: 0..<4, using: &generator) > 0 {
            members[name] =
                switch Int.random(in: 0..<8, using: &generator) {
                case 0: .string("x")
                case 1: .null
                case 6: .integer(9_007_199_254_740_992 + Int64.random(in: 0..<3, using: &generator))
                case 7: .decimal("900719925474099\(Int.random(in: 1..<4, using: &generator)).5")
                case 2: .double(Double(Int.random(in: 0..<30, using: &generator)) / 8)
                default: .integer(Int64.random(in: 0..<4, using: &generator))
                }
        }
        return .object(members)
    }

    @Test("members are not kept if the order does not know the name of one, in whichever text", arguments: ["a", "e"])
    func unknownName(name: String) throws {
        let query = try MemberQuery(filter: nil, sort: nil, window: 0..<9, fields: nil, wantsCount: true)
        let members = texts(#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#)

        #expect(try query.kept(of: members) { JSONTree.key($0) } != nil)
        #expect(try query.kept(of: members) { $0 == name ? nil : JSONTree.key($0) } == nil)
    }

    @Test("kept members have the answer of a query that looks at every member", arguments: 0..<40)
    func model(seed: Int) throws {
        var generator = SystemRandomNumberGenerator()
        let low = Int.random(in: 0..<4, using: &generator)
        let sort = Self.sorts.randomElement(using: &generator) ?? nil
        let filter = Self.filters.randomElement(using: &generator) ?? nil
        let window = low..<(low + Int.random(in: 0..<12, using: &generator))
        var query = try MemberQuery(
            filter: filter, sort: sort, window: window, fields: seed % 4 == 0 ? "/a" : nil, wantsCount: seed % 3 == 0)
        let order: MemberOrder = { JSONTree.key($0) }
        // Two spellings of one letter are two names.
        var members: [JSONKey: JSONValue] = [:]
        // The members in the order in which a state has them.
        func whole() -> [UInt8] {
            var object = JSONObject()
            for (name, value) in members { object[name.text] = value }
            return JSONTree(.object(object)).text
        }
        for number in 0..<20 { members[JSONKey("\(number * 7 % 31)")] = Self.value(using: &generator) }
        if seed % 2 == 0,
            case .string(let next)? = try query.answered(to: texts(whole()), order).map({ try JSONValue(parsing: $0) }
            )?[pointer: "/next"]
        {
            query = try MemberQuery(
                filter: filter, sort: sort, window: window, fields: nil, wantsCount: seed % 3 == 0, after: next)
        }
        let kept = try #require(try query.kept(of: texts(whole()), order))
        var shown = try kept.answer(from: []) { members[JSONKey($0)]?.text }
        #expect(try query.answer(to: texts(whole()), order) == shown)

        for _ in 0..<120 {
            var touched: Set<JSONKey> = []
            for _ in 0..<Int.random(in: 1..<4, using: &generator) {
                let name = ["3", "10", "é", "e\u{301}", "-4", "zz", "21", "n"].randomElement(using: &generator) ?? ""
                touched.insert(JSONKey(name))
                members[JSONKey(name)] = Bool.random(using: &generator) ? Self.value(using: &generator) : nil
            }
            let mayDiffer = try kept.update(
                touched.map { ChangedMember(name: $0, order: JSONTree.key($0.text), value: members[$0]) },
                stepsMax: nil)
            let expected = try query.answer(to: texts(whole()), order)
            if mayDiffer {
                // The bytes of the last answer are there, or others have taken their room.
                let before = Bool.random(using: &generator) ? shown : []
                shown = try kept.answer(from: before) { members[JSONKey($0)]?.text }
            }

            #expect(shown == expected, "\(query.identity) of \(String(decoding: whole(), as: UTF8.self))")
        }
    }

    @Test("an update that looks at too many values changes nothing")
    func costly() throws {
        let query = try MemberQuery(filter: "@..a", sort: nil, window: 0..<9, fields: nil, wantsCount: true)
        let order: MemberOrder = { JSONTree.key($0) }
        let kept = try #require(try query.kept(of: texts(#"{"x":{"a":1}}"#), order))
        let before = try kept.answer(from: []) { _ in Array(#"{"a":1}"#.utf8) }
        let large = JSONValue.array(Array(repeating: .integer(1), count: 100))

        #expect(throws: QueryStop.self) {
            try kept.update(
                [
                    ChangedMember(name: JSONKey("x"), order: .text("x"), value: nil),
                    ChangedMember(name: JSONKey("y"), order: .text("y"), value: large),
                ], stepsMax: 50)
        }

        #expect(try kept.answer(from: before) { _ in nil } == before)
    }

    @Test("an array, and an object with a name that the order does not know, are not kept")
    func unkept() throws {
        let query = try MemberQuery(filter: nil, sort: "/a", window: 0..<9, fields: nil, wantsCount: true)
        #expect(try query.kept(of: texts("[1]")) { JSONTree.key($0) } == nil)
        #expect(try query.kept(of: texts(#"{"a":1}"#)) { _ in nil } == nil)
        #expect(throws: NoMembers.self) { try query.kept(of: texts("1")) { JSONTree.key($0) } }
    }
}
