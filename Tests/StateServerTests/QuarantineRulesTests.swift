import StateJSON
import Testing

@testable import StateServer
@testable import StateStore

@Suite("The rules of the quarantine")
struct QuarantineRulesTests {
    typealias Entry = QuarantineFile.Entry

    func record(_ name: String = "a") -> MarkPage.Record {
        .init(identity: TransactionIdentity(.id, ContentHash(Array(name.utf8))), type: "boom", name: name)
    }

    func states(_ entries: [Entry]) -> [String] {
        entries.map { "\($0.name ?? "") \($0.state.rawValue) \($0.crashes) \($0.tried ?? "-")" }
    }

    @Test("what a lost server carried out is suspected, and what was under way at two losses is not set aside")
    func losses() {
        var entries: [Entry] = []
        for server in ["w", "w", "v"] { entries.recordLoss(of: server, during: record()) }

        #expect(states(entries) == ["a suspected 1 -"])
    }

    @Test("a suspected action whose trial is lost is set aside, by whoever sees it, once")
    func trial() {
        var entries: [Entry] = []
        entries.recordLoss(of: "w", during: record())

        #expect(entries.beginTrial(of: record(), by: "v") == .passes)
        entries.recordLoss(of: "x", during: record())
        #expect(states(entries) == ["a suspected 1 v"])
        #expect(entries.beginTrial(of: record(), by: "x") == .isTried)
        entries.recordLoss(of: "v", during: record())
        entries.recordLoss(of: "v", during: record())

        #expect(states(entries) == ["a quarantined 2 -"])
        #expect(entries.beginTrial(of: record(), by: "x") == .refused(entries[0].id))
    }

    @Test("a server that begins the same trial again has ended during the one before")
    func again() {
        var entries: [Entry] = []
        #expect(entries.beginTrial(of: record(), by: "v") == .passes)

        #expect(entries.beginTrial(of: record(), by: "v") == .refused(entries[0].id))
    }

    @Test("a trial without an end sets the action aside, and one that did not come to the reducers leaves it suspected")
    func ends() throws {
        var entries: [Entry] = []
        for name in ["a", "b", "c"] { _ = entries.beginTrial(of: record(name), by: "v") }

        entries.endTrial(of: record("a").identity, by: "v")
        entries.endTrial(of: record("b").identity, by: "w")
        entries.setAside(record("a").identity)
        entries.setAside(record("c").identity)

        #expect(states(entries) == ["a suspected 1 -", "b suspected 1 v", "c quarantined 2 -"])
    }

    @Test(
        "the end of a server that another one has told of counts once, and any other end sets a suspected action aside",
        arguments: [("w", false), ("v", true), (nil, true)])
    func told(server: String?, isSetAside: Bool) {
        var entries: [Entry] = []
        entries.recordLoss(of: "w", during: record())

        #expect(entries.recordEnd(during: record(), of: server, isSuspected: false) == isSetAside)
        #expect(entries.map(\.crashes) == [isSetAside ? 2 : 1])
    }

    @Test("an action that the operator lets pass is set aside by the next end, also by one that another server sees")
    func retried() {
        for isSeen in [false, true] {
            var entries: [Entry] = []
            _ = entries.recordEnd(during: record(), of: nil, isSuspected: true)
            entries[0].state = .retry
            #expect(entries.beginTrial(of: record(), by: "v") == .passes)

            if isSeen {
                entries.recordLoss(of: "v", during: record())
            } else {
                _ = entries.recordEnd(during: record(), of: "v", isSuspected: false)
            }

            #expect(states(entries) == ["a quarantined 3 -"])
        }
    }

    @Test("what is suspected makes way in a full list before anything that is set aside")
    func full() {
        var entries: [Entry] = []
        for number in 0..<999 { _ = entries.recordEnd(during: record("\(number)"), of: nil, isSuspected: true) }
        for name in ["a", "b", "c"] { entries.recordLoss(of: "w", during: record(name)) }

        #expect(entries.count == 1000)
        #expect(entries.last?.name == "c")
        #expect(entries.filter { $0.state == .quarantined }.count == 999)
    }

    @Test("a view is set aside with the version of the state, the newest one where it ends another process")
    func view() {
        var entries: [Entry] = []
        var record = MarkPage.Record(identity: TransactionIdentity(view: "sum"), type: "view", name: "sum", version: 5)
        _ = entries.recordEnd(during: record, of: nil, isSuspected: true)
        #expect(entries.map(\.version) == [5])
        record.version = 9
        _ = entries.recordEnd(during: record, of: nil, isSuspected: false)

        #expect(entries.map(\.version) == [9])
        #expect(entries.map(\.identification) == ["view sum"])
    }
}
