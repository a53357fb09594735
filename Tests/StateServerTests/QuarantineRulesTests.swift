import StateJSON
import Testing

@testable import StateServer
@testable import StateStore

@Suite("The rules of the quarantine")
struct QuarantineRulesTests {
    typealias Entry = QuarantineEntry

    func record(_ name: String = "a") -> MarkPage.Record {
        .init(identity: TransactionIdentity(.id, ContentHash(Array(name.utf8))), type: "boom", name: name)
    }

    func states(_ entries: [Entry]) -> [String] {
        entries.map { "\($0.name ?? "") \($0.state.rawValue) \($0.crashes) \($0.tried?.server ?? "-")" }
    }

    @Test("what a lost server carried out is suspected, and what was under way at two losses is not set aside")
    func losses() {
        var entries: [Entry] = []
        for server in ["w", "w", "v"] { entries.recordLoss(of: server, during: record()) }

        #expect(states(entries) == ["a suspected 1 -"])
    }

    func trial(by server: String, _ process: String = "1", isOnPage: Bool = false) -> QuarantineEntry.Trial {
        .init(server: server, process: process, isOnPage: isOnPage)
    }

    @Test("a suspected action whose trial is lost is set aside, by whoever sees it, once")
    func lostTrial() {
        var entries: [Entry] = []
        entries.recordLoss(of: "w", during: record())

        #expect(entries.begin(trial(by: "v"), of: record()) == .passes)
        entries.recordLoss(of: "x", during: record())
        #expect(states(entries) == ["a suspected 1 v"])
        #expect(entries.begin(trial(by: "x"), of: record()) == .isTried)
        entries.recordLoss(of: "v", during: record())
        entries.recordLoss(of: "v", during: record())

        #expect(states(entries) == ["a quarantined 2 -"])
        #expect(entries.begin(trial(by: "x"), of: record()) == .refused(entries[0].id))
    }

    @Test("a lost trial of a server with a page is left to that page")
    func lostTrialOnPage() {
        var entries: [Entry] = []
        _ = entries.begin(trial(by: "v", isOnPage: true), of: record())
        entries.recordLoss(of: "v", during: record())

        #expect(states(entries) == ["a suspected 1 v"])
        #expect(entries.begin(trial(by: "x"), of: record()) == .isTried)
        entries.recordEnd(during: record(), of: "v")
        #expect(states(entries) == ["a quarantined 2 -"])
    }

    @Test("a later process of the server that tries has ended in the trial, unless its page says otherwise")
    func again() {
        var entries: [Entry] = []
        for name in ["a", "b"] { #expect(entries.begin(trial(by: "v"), of: record(name)) == .passes) }
        #expect(entries.begin(trial(by: "v", isOnPage: true), of: record("c")) == .passes)

        #expect(entries.begin(trial(by: "v"), of: record("a")) == .passes)
        #expect(entries.begin(trial(by: "v", "2", isOnPage: true), of: record("c")) == .passes)
        #expect(entries.begin(trial(by: "v", "2"), of: record("b")) == .refused(entries[2].id))
    }

    @Test("a trial without an end sets the action aside, and one that did not come to the reducers leaves it suspected")
    func ends() throws {
        var entries: [Entry] = []
        for name in ["a", "b", "c", "d"] { _ = entries.begin(trial(by: "v"), of: record(name)) }

        entries.end(trial(by: "v"), of: record("a").identity)
        entries.end(trial(by: "w"), of: record("b").identity)
        entries.end(trial(by: "v", "2"), of: record("d").identity)
        entries.setAside(record("a").identity, triedIn: trial(by: "v"))
        entries.setAside(record("c").identity, triedIn: trial(by: "v"))
        entries.setAside(record("d").identity, triedIn: trial(by: "v", "2"))

        #expect(states(entries) == ["a suspected 1 -", "b suspected 1 v", "d suspected 1 v", "c quarantined 2 -"])
    }

    @Test(
        "the end of a server that another one has told of counts once, and any other end sets a suspected action aside",
        arguments: [("w", false), ("v", true), (nil, true)])
    func told(server: String?, isSetAside: Bool) {
        var entries: [Entry] = []
        entries.recordLoss(of: "w", during: record())

        entries.recordEnd(during: record(), of: server)
        #expect(states(entries) == [isSetAside ? "a quarantined 2 -" : "a suspected 1 -"])

        entries.recordEnd(during: record(), of: "w")
        #expect(states(entries) == [isSetAside ? "a quarantined 3 -" : "a quarantined 2 -"])
    }

    @Test("an action that the operator lets pass is set aside by the next end, also by one that another server sees")
    func retried() {
        for isSeen in [false, true] {
            var entries: [Entry] = []
            for _ in 0..<2 { entries.recordEnd(during: record(), of: nil) }
            entries[0].state = .retry
            #expect(entries.begin(trial(by: "v"), of: record()) == .passes)

            if isSeen {
                entries.recordLoss(of: "v", during: record())
            } else {
                entries.recordEnd(during: record(), of: "v")
            }

            #expect(states(entries) == ["a quarantined 3 -"])
        }
    }

    @Test("what is suspected makes way in a full list before anything that is set aside")
    func full() {
        var entries: [Entry] = []
        for number in 0..<999 {
            for _ in 0..<2 { entries.recordEnd(during: record("\(number)"), of: nil) }
        }
        for name in ["a", "b", "c"] { entries.recordLoss(of: "w", during: record(name)) }

        #expect(entries.count == 1000)
        #expect(entries.last?.name == "c")
        #expect(entries.filter { $0.state == .quarantined }.count == 999)
    }

    @Test("a view is set aside with the version of the state, the newest one where it ends another process")
    func view() {
        var entries: [Entry] = []
        var record = MarkPage.Record(identity: TransactionIdentity(view: "sum"), type: "view", name: "sum", version: 5)
        for _ in 0..<2 { entries.recordEnd(during: record, of: "v") }
        #expect(entries.map(\.version) == [5])
        record.version = 9
        entries.recordEnd(during: record, of: "v")

        #expect(entries.map(\.version) == [9])
        #expect(entries.map(\.identification) == ["view sum"])
    }
}
