import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// A state that is encoded as one value and counts its encodings.
private struct Archive: Domain {
    struct State: StateType, Codable {
        static let encodingsCount = Atomic(0)

        var entries: [String] = []

        init() {}

        init(from decoder: any Decoder) throws {
            entries = try decoder.container(keyedBy: Key.self).decode([String].self, forKey: .entries)
        }

        func encode(to encoder: any Encoder) throws {
            Self.encodingsCount.add(1, ordering: .relaxed)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(entries, forKey: .entries)
        }

        enum Key: String, CodingKey { case entries }
    }

    struct Append: Action { static let type = "archive/append"; var entry: String }

    var reducer: some Reducer<State> {
        On(Append.self) { state, action in state.entries.append(action.entry) }
    }
}

@Suite("Preconditions", .serialized)
struct PreconditionTests {
    private static func core(entries: Int) throws -> Core {
        var state = Archive.State()
        state.entries = (0..<entries).map { "entry \($0)" }
        return Core(
            domain: try CompiledDomain(Archive()), epoch: .random(), middleware: [], limits: StoreLimits(),
            state: .of(state),
            version: 0, keys: [])
    }

    private static func append(expecting text: String, at pointer: JSONPointer = .root) throws -> Transaction {
        let value = try JSONValue(parsing: Array(text.utf8))
        return Transaction.of(Archive.Append(entry: "new"), expectations: [.init(pointer, .value(value))])
    }

    @Test("no precondition encodes the state, however many there are, also not behind a way back")
    func encodesNothing() throws {
        let core = try Self.core(entries: 1000)
        let before = core.latest
        let failing = try Self.append(expecting: "{}")
        let guarded = Transaction.of(Archive.Append(entry: "new"), tagGuard: .init(.root, .tags(.tags(["another"]))))
        let count = { Archive.State.encodingsCount.load(ordering: .relaxed) }

        let start = count()
        let turn = core.turn(Array(repeating: failing, count: 100) + [guarded], at: Timestamp(milliseconds: 0))
        let commit = core.turn([.of(Archive.Append(entry: "new"))], at: Timestamp(milliseconds: 0))
        core.goBack(to: before, without: commit.commits)
        _ = core.turn([failing], at: Timestamp(milliseconds: 0))

        #expect(turn.outcomes.allSatisfy { if case .preconditionFailed = $0 { true } else { false } })
        // That of the commit's new state.
        #expect(count() - start == 1)
    }

    @Test("If-Match of anything encodes nothing, and fails where there is nothing")
    func anything() throws {
        let core = try Self.core(entries: 1000)
        /// The outcome of a dry run, and how often it has encoded the state.
        func dryRun(guarding pointer: JSONPointer?) -> (Outcome?, Int) {
            let transaction = Transaction.of(
                Archive.Append(entry: "new"), purpose: .dryRun, tagGuard: pointer.map { .init($0, .tags(.any)) })
            let before = Archive.State.encodingsCount.load(ordering: .relaxed)
            let outcome = core.turn([transaction], at: Timestamp(milliseconds: 0)).outcomes.first
            return (outcome, Archive.State.encodingsCount.load(ordering: .relaxed) - before)
        }

        let (_, cost) = dryRun(guarding: nil)
        let (whole, guardedCost) = dryRun(guarding: .root)

        #expect(guardedCost == cost)
        guard case .wouldCommit? = whole, case .wouldCommit? = dryRun(guarding: "/entries/1").0 else {
            Issue.record("\(String(describing: whole))")
            return
        }
        guard case .preconditionFailed(let failure)? = dryRun(guarding: "/nothing").0 else {
            Issue.record("no")
            return
        }
        #expect(failure.actualTag == nil)
    }

    @Test("a failure has a value of 4096 bytes, and only the size and tag of one of 4097 bytes", arguments: [0, 1])
    func cut(surplus: Int) throws {
        let core = try Self.core(entries: 0)
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

    @Test("a long text has a tag that no turn makes")
    func text() throws {
        let (core, _) = try Self.tree()
        _ = core.turn(
            [.of(Put(place: "long", value: JSONTree(.string(String(repeating: "x", count: 70_000)))))],
            at: Timestamp(milliseconds: 0))
        let part = try #require(core.latest.longTree(at: "/long"))
        let guarded = { (tag: String) in
            Transaction.of(Put(place: "n", value: JSONTree(1)), tagGuard: .init("/long", .tags(.tags([tag]))))
        }

        let before = core.turn([guarded(Encoded(part.text).tag)], at: Timestamp(milliseconds: 0)).outcomes[0]
        let behind = core.turn([guarded(part.tag), guarded("x")], at: Timestamp(milliseconds: 0)).outcomes

        #expect(before.receipt == nil && behind.map { $0.receipt?.version } == [2, nil])
    }

    private static func tree() throws -> (Core, JSONTree) {
        let domain = try CompiledDomain(Tree())
        let core = Core(
            domain: domain, epoch: .random(), middleware: [], limits: StoreLimits(), state: domain.initial, version: 0,
            keys: [])
        return (core, try #require(core.latest.tree(at: "/long")))
    }

    @Test("no turn makes the tag of a long value, and a tag stays until a commit touches the value")
    func long() throws {
        let (core, part) = try Self.tree()
        let tag = Encoded(part.text).tag
        func outcome(_ place: String, _ value: JSONValue, _ tags: TagSet) -> Outcome {
            core.turn(
                [.of(Put(place: place, value: JSONTree(value)), tagGuard: .init("/long", .tags(tags)))],
                at: Timestamp(milliseconds: 0)
            ).outcomes[0]
        }

        guard case .preconditionFailed(let failure) = outcome("n", 1, .tags(["other"])) else {
            Issue.record("another tag matches")
            return
        }
        #expect(!part.isTagged && failure.lacksTag)
        #expect(failure.actualBytes == part.bytesCount && failure.actual == nil)
        #expect(failure.actualTag == tag)
        #expect(part.isTagged && !failure.lacksTag, "the failure has made it for all")

        #expect(outcome("n", 1, .tags(["x", tag])).receipt?.version == 1)
        #expect(outcome("n", 2, .tags([tag])).receipt?.version == 2, "no commit has touched the value")
        #expect(outcome("long", .array((1..<20_000).map { .integer($0) }), .tags([tag])).receipt?.version == 3)
        #expect(outcome("n", 3, .tags([tag])).receipt == nil)
        #expect(outcome("n", 3, .any).receipt?.version == 4)
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
        let core = try Self.core(entries: 0)

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

    @Test(
        "a text of another kind or far from the length of another is not parsed",
        arguments: [("{}", "[]"), ("null", "0"), (#""1""#, "1"), ("true", "false")])
    func different(left: String, right: String) {
        #expect(!JSONText.maySayTheSame(Array(left.utf8), Array(right.utf8)))
        #expect(!JSONText.maySayTheSame(Array("{}".utf8), Array(repeating: UInt8(ascii: "{"), count: 96)))
        #expect(!JSONText.maySayTheSame(Array(repeating: UInt8(ascii: "{"), count: 96), Array("{}".utf8)))
    }
}
