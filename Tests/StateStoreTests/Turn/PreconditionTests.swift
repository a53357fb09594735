import Testing

@testable import StateJSON
@testable import StateStore

/// A state that is encoded as one value.
private struct Archive: Domain {
    struct State: StateType, Codable { var entries: [String] = [] }

    struct Append: Action { static let type = "archive/append"; var entry: String }

    var reducer: some Reducer<State> {
        On(Append.self) { state, action in state.entries.append(action.entry) }
    }
}

@Suite("Preconditions")
struct PreconditionTests {
    private static func core() throws -> Core {
        Core(
            domain: try CompiledDomain(Archive()), epoch: .random(), middleware: [], limits: StoreLimits(),
            state: .of(Archive.State()), version: 0, keys: [])
    }

    private static func append(expecting text: String, at pointer: JSONPointer = .root) throws -> Transaction {
        let value = try JSONValue(parsing: Array(text.utf8))
        return Transaction.of(Archive.Append(entry: "new"), expectations: [.init(pointer, .value(value))])
    }

    @Test("a failure has a value of 4096 bytes, and only the size and tag of one of 4097 bytes", arguments: [0, 1])
    func cut(surplus: Int) throws {
        let core = try Self.core()
        let entry = String(repeating: "x", count: 4096 - 2 + surplus)
        _ = core.turn([.of(Archive.Append(entry: entry))], at: Timestamp(milliseconds: 0))

        let turn = core.turn(
            [try Self.append(expecting: "null", at: "/entries/0")], at: Timestamp(milliseconds: 0))

        guard case .preconditionFailed(let failure) = turn.outcomes.first else { Issue.record("\(turn)"); return }
        #expect(failure.actual == (surplus == 0 ? Array("\"\(entry)\"".utf8) : nil))
        #expect(failure.actualBytes == 4096 + surplus)
        #expect(failure.actualTag == Encoded(Array("\"\(entry)\"".utf8)).tag)
    }

    private struct Put: Action {
        static let type = "put"
        var place: String
        var value: JSONTree
    }

    /// A state with a long part beside a short one.
    private struct Tree: Domain {
        static let long = JSONValue.array((0..<20_000).map { .integer($0) })
        var reducer: some Reducer<JSONTree> {
            JSONLayout(initial: JSONTree(["long": Self.long, "n": 0]), parts: nil)
            On(Put.self) { (state, action) throws(Rejection) in
                state = state.applying("replace", at: [action.place], action.value) ?? state
            }
        }
    }

    private static func tree() throws -> (Core, JSONTree) {
        let domain = try CompiledDomain(Tree())
        let core = Core(
            domain: domain, epoch: .random(), middleware: [], limits: StoreLimits(), state: domain.initial, version: 0,
            keys: [])
        return (core, try #require(core.latest.tree(at: "/long")))
    }

    @Test(
        "a long value is compared as a tree: in any spelling of numbers, and without an encoding",
        arguments: [("0.0", true), ("0", true), ("1", false), ("\"0\"", false), ("", false)])
    func expected(first: String, holds: Bool) throws {
        let (core, part) = try Self.tree()
        let texts = (first.isEmpty ? [] : [first]) + (1..<20_000).map(String.init)
        let value = try JSONValue(parsing: Array("[\(texts.joined(separator: ","))]".utf8))

        let outcome = core.turn(
            [.of(Put(place: "n", value: JSONTree(1)), expectations: [.init("/long", .value(value))])],
            at: Timestamp(milliseconds: 0)
        ).outcomes[0]

        #expect((outcome.receipt != nil) == holds)
        #expect(!part.isTagged)
        #expect(outcome.lacksTag == !holds)
        guard case .preconditionFailed(let failure) = outcome else { return }
        #expect(failure.expected == value.text && failure.actualBytes == part.bytesCount)
    }

    @Test("the preconditions of a later transaction are checked against the state of the earlier ones")
    func eachVersion() throws {
        let core = try Self.core()

        let turn = core.turn(
            [
                try Self.append(expecting: #"{"entries":[]}"#), try Self.append(expecting: #"{"entries":[]}"#),
                try Self.append(expecting: #"{"entries":["new"]}"#),
            ], at: Timestamp(milliseconds: 0))

        #expect(turn.outcomes.map { $0.receipt?.version } == [1, nil, 2])
    }

    @Test(
        "texts of equal values may be equal, whatever their spelling",
        arguments: [
            ("1", "1.0"), ("-1", "-1e0"), ("0", "-0.0"), ("1e300", "1e+300"), (#""a""#, #""\u0061""#),
            (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#), ("[]", "[]"),
            ("10000000000000000000", "1e19"), ("[1,1,1,1]", "[1.0,1.0,1.0,1.0]"),
        ])
    func spellings(left: String, right: String) throws {
        let (first, second) = (Array(left.utf8), Array(right.utf8))

        #expect(try JSONValue(parsing: first) == JSONValue(parsing: second))
        #expect(JSONText.maySayTheSame(first, second))
        #expect(JSONText.maySayTheSame(second, first))
    }
}
