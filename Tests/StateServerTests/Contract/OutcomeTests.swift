import HTTPMessages
import HTTPTypes
import StateHTTP
import Synchronization
import TestSupport
import Testing

@testable import StateStore

@Suite("The outcome of an action")
struct OutcomeTests {
    /// Asks for the outcome of the action with the ID `a`, which became a version or nothing.
    private func code(storeVersion: Version, _ journal: SettlingJournal) throws -> Int? {
        var setting = Stage.Setting()
        setting.version = storeVersion
        return try Stage(setting, journal: journal).receive(Request(target: "/v1/actions/a")).answer?.status.code
    }

    @Test("an action that a probe finds is not answered as one that is nowhere")
    func found() throws {
        let commit = Commit.setting(1, ids: ["a"])
        let published = SettlingJournal(finding: commit)
        #expect(try code(storeVersion: 1, published) == 200)
        #expect(try code(storeVersion: 1, published) == 200)

        let unpublished = SettlingJournal(finding: commit)
        #expect(try code(storeVersion: 0, unpublished) == 503)
        #expect(!unpublished.isOutcomeOpen)
        #expect(try code(storeVersion: 0, unpublished) == 503)
    }

    @Test("an action that a probe does not find is nowhere for good")
    func notFound() throws {
        let journal = SettlingJournal(finding: nil)
        #expect(try code(storeVersion: 0, journal) == 404)
        #expect(!journal.isOutcomeOpen)
    }
}

/// A journal whose failed append has an open outcome, until a probe finds its commit or nothing.
private final class SettlingJournal: Journal {
    private let memory = MemoryJournal(Array("{}".utf8))
    private let found: Commit?
    private let isOpen = Mutex(true)

    init(finding found: Commit?) { self.found = found }

    func probe() {
        guard isOpen.withLock({ exchange(&$0, with: false) }), let found else { return }
        _ = memory.append([found], after: found.version - 1)
    }
    var isOutcomeOpen: Bool { isOpen.withLock(\.self) }

    func append(_ commits: [Commit], after version: Version) -> AppendResult { .failed }
    func commits(after version: Version, through last: Version, limit: Int) -> [Commit] {
        memory.commits(after: version, through: last, limit: limit)
    }
    func commit(version: Version) throws -> Commit? { try memory.commit(version: version) }
    func commit(id: String, by subject: String?) -> Commit? { memory.commit(id: id, by: subject) }
    func state(at version: Version) throws -> SavedState? { try memory.state(at: version) }
    func oldestState() -> Version { memory.oldestState() }
    func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {}
    func note(historyTime: Timestamp) {}
    func follow(_ appended: @escaping @Sendable () -> Void) {}
    var failure: String? { nil }
    var isShared: Bool { true }
    var bytesCount: Int? { nil }
    func close(_ snapshot: Snapshot) {}
}
