import Foundation
import StateJSON
import StateJournal
import StateStore
import Testing

@testable import StateServer

@Suite("A journal with scheduled actions")
struct ScheduledJournalTests {
    private typealias Sums = JournalToolTests.Sums
    private let scratch = JournalToolTests.Scratch()

    private func scheduled(_ amount: Int, after seconds: Double, name: String) throws -> Transaction {
        let sent = Array(#"{"type":"sums/add","payload":{"amount":\#(amount)}}"#.utf8)
        return Transaction([
            .init(try StoreSchedule(Sums.Add(amount: amount), sent: sent, after: seconds, at: nil, name: name))
        ])
    }

    private func schedule(_ name: String) throws -> ActionSchedule {
        let journal = try scratch.journal(name)
        return try SavedState(saved: journal.recover(at: Timestamp(milliseconds: 0)).state).schedule
    }

    /// Records schedules, replacements and cancellations, and a snapshot in the middle.
    private func record() throws -> (ActionSchedule, Version) {
        let journal = try scratch.journal("recorded")
        let store = UntypedStore(
            domain: try CompiledDomain(Sums()),
            origin: .init(state: .of(Sums.State()), cursor: Cursor(journal.epoch, 0)),
            now: { Timestamp(milliseconds: 77) }, journal: journal)
        for number in 0..<40 {
            _ = store.submitNow(try scheduled(number, after: Double(number % 9), name: "n\(number % 25)"))
            if number % 4 == 0 { _ = store.submitNow(Transaction([.init(StoreUnschedule(name: "n\(number % 25)"))])) }
            if number == 20 { _ = try journal.saveSnapshot(store.hub.latest.saved(), version: store.version) }
        }
        store.drain()
        return (store.hub.latest.schedule, store.version)
    }

    @Test("a recovery, a copy, an import and a replay have the schedule, and a verification compares it")
    func everywhere() throws {
        let (live, version) = try record()
        #expect(live.count > 5)

        #expect(try schedule("recorded") == live)
        let tool = try scratch.tool("recorded")
        var lines: [[UInt8]] = []
        try tool.export { lines.append($0.dropLast()) }
        func feed() -> () -> [UInt8]? {
            var rest = lines[...]
            return { rest.popFirst() }
        }
        _ = try scratch.tool("loaded").load(feed())
        _ = try scratch.tool("replayed").replay(Sums(), feed())
        _ = try tool.copy(to: scratch.tool("copied"), keepsEpoch: false)
        for name in ["loaded", "replayed", "copied"] {
            #expect(try schedule(name) == live, "\(name)")
            #expect(try scratch.tool(name).verify(Sums(), .deep).end == version, "\(name)")
        }
        #expect(try tool.verify(Sums(), .deep).commitsCount == Int(version))
        // An export that begins in the middle has the schedule of its beginning.
        lines = []
        try tool.export(since: 30) { lines.append($0.dropLast()) }
        _ = try scratch.tool("half").load(feed())
        #expect(try schedule("half") == live)
        #expect(String(decoding: lines[0], as: UTF8.self).contains(#""schedule":[{"#))
    }
}
