import Queries
import StateJSON
import Testing

@testable import StateHTTP
@testable import StateStore

@Suite("Kept answers of keyed queries")
struct KeyedAnswersTests {
    @Test("the oldest answer goes when the queries take too much memory, however short their answers are")
    func memory() throws {
        let answers = KeyedAnswers(bytesMax: 300_000)
        let empty = try #require(AnswerMembers(Encoded(Array(#"{"members":[]}"#.utf8))))
        let cursor = Cursor(try #require(Epoch("storekeeperdemoa")), 1)
        let selections = try (0..<3).map { number in
            let filter = "@.a == '\(number)\(String(repeating: "x", count: 4000))'"
            let query = try MemberQuery(filter: filter, sort: nil, window: 0..<9, fields: nil, wantsCount: false)
            return Selection.query(SelectionQuery(query), of: .pointer("/tasks"))
        }
        for selection in selections { answers.note(empty, to: selection, at: cursor) }

        #expect(selections.map { answers.answer(to: $0, at: cursor) != nil } == [false, true, true])
    }

    @Test("a key that an answer has twice counts once")
    func twice() throws {
        func members(_ keys: String...) throws -> AnswerMembers {
            let members = keys.map { #"{"key":"\#($0)","value":1}"# }.joined(separator: ",")
            return try #require(AnswerMembers(Encoded(Array(#"{"members":[\#(members)]}"#.utf8))))
        }

        let lists = try members("b", "a").lists(since: members("a", "a", "b"))

        #expect(lists.map(\.name) == ["moved", "order"])
        #expect(lists.map { $0.keys.map(\.text) } == [["b"], ["b", "a"]])
    }
}
