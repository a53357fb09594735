import StateJSON
import Testing

@testable import StateStore

/// Texts that Swift takes for equal, and that are two names.
private let spellings = [("caf\u{E9}", "cafe\u{301}"), ("K", "\u{212A}")]

@Suite("Identities")
struct IdentityTests {
    @Test("two spellings that Swift takes for equal are two texts, keys and names", arguments: spellings)
    func equal(left: String, right: String) {
        #expect(left == right)
        #expect(ExactText(left) != ExactText(right))
        #expect(Set([ExactText(left), ExactText(right), ExactText(left)]).count == 2)
        #expect(IdempotencyKey("k", of: left) != IdempotencyKey("k", of: right))
        #expect(CommitName("i", by: left) != CommitName("i", by: right))
        #expect(CommitName(left, by: nil) != CommitName(right, by: nil))
        #expect([left: 1].value(named: left) == 1)
        #expect([left: 1].value(named: right) == nil)
    }

    @Test("a subject and an ID are two texts, whatever is in them")
    func pairs() {
        #expect(CommitName("order-1", by: "a") != CommitName("a\0order-1", by: nil))
        #expect(CommitName("b", by: "a\0") != CommitName("\0b", by: "a"))
        #expect(IdempotencyKey("k", of: "a") != IdempotencyKey("a\0k"))
        #expect(IdempotencyKey("k", line: 1) != IdempotencyKey("k\n1"))
    }

    @Test(
        "a recorded key is split into what it was made of",
        arguments: [
            ("k", IdempotencyKey("k")), ("a\0k", IdempotencyKey("k", of: "a")),
            ("a\0k\n12", IdempotencyKey("k", of: "a", line: 12)), ("k\n0", IdempotencyKey("k", line: 0)),
            ("k\n01", IdempotencyKey("k\n01")), ("k\n-1", IdempotencyKey("k\n-1")), ("k\n", IdempotencyKey("k\n")),
            ("k\n1\n2", IdempotencyKey("k\n1", line: 2)), ("a\0b\0c", IdempotencyKey("b\0c", of: "a")),
            ("\0k", IdempotencyKey("k", of: "")), ("", IdempotencyKey("")), ("k\r\n3", IdempotencyKey("k\r", line: 3)),
        ])
    func recorded(text: String, key: IdempotencyKey) {
        #expect(IdempotencyKey(recorded: text) == key)
        #expect(ExactText(key.recorded) == ExactText(text))
    }

    @Test("the history finds a commit for its own subject only")
    func history() throws {
        let core = try Core.sample()
        let snapshot = core.latest
        var history = History(beginningWith: snapshot, countMax: 10, weightMax: 1 << 20)
        func commit(_ version: Version, _ id: String, by subject: String) -> Commit {
            Commit(
                version: version, time: Timestamp(milliseconds: 0), id: id, by: subject, types: [], action: [],
                patch: [], clientIDs: [id])
        }
        history.keep(commit(1, "order-1", by: "a"))
        history.keep(commit(2, "a\0order-1", by: "b"))
        history.keep(commit(3, "order-1", by: "caf\u{E9}"))

        #expect(history.commit(id: "order-1", by: "a")?.version == 1)
        #expect(history.commit(id: "a\0order-1", by: "b")?.version == 2)
        #expect(history.commit(id: "order-1", by: "caf\u{E9}")?.version == 3)
        #expect(history.commit(id: "order-1", by: "cafe\u{301}") == nil)
        #expect(history.commit(id: "a\0order-1", by: "a") == nil)
    }

    @Test("the ledger has a record for each spelling of a subject")
    func ledger() {
        func record(_ subject: String, _ version: Version) -> KeyRecord {
            KeyRecord(
                key: IdempotencyKey("k", of: subject), fingerprint: "", version: version, id: "", isChange: true,
                expiry: Timestamp(milliseconds: 10), client: subject)
        }
        let ledger = IdempotencyLedger([record("caf\u{E9}", 1), record("cafe\u{301}", 2)])

        #expect(ledger.count == 2)
        #expect(
            ledger.record(IdempotencyKey("k", of: "cafe\u{301}"), at: Timestamp(milliseconds: 0))?.version == 2)
        #expect(ledger.count(of: "caf\u{E9}") == 1)
    }

    @Test("a filter by a subject passes the commits of this spelling")
    func filter() {
        var filter = ChangesFilter()
        filter.by = "caf\u{E9}"
        func commit(by subject: String) -> Commit {
            Commit(
                version: 1, time: Timestamp(milliseconds: 0), id: "1", by: subject, types: [], action: [], patch: [])
        }

        #expect(filter.passes(commit(by: "caf\u{E9}")))
        #expect(!filter.passes(commit(by: "cafe\u{301}")))
    }
}

extension History {
    /// Appends a commit, and forgets what is dropped for it.
    fileprivate mutating func keep(_ commit: Commit) {
        var dropped: [Commit] = []
        append(commit, dropping: &dropped)
    }
}
