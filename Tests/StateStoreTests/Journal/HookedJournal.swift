@testable import StateStore

/// An append that fails without knowing whether its commits are durable.
struct UnknownOutcome: Error {}

/// A journal in memory that calls a test before each append, so that the test can make the append fail: with an unknown
/// outcome by throwing ``UnknownOutcome``.
final class HookedJournal: Journal {
    private let memory: MemoryJournal
    private let hook: @Sendable ([Commit]) throws -> Void

    init(
        _ hook: @escaping @Sendable ([Commit]) throws -> Void,
        on memory: MemoryJournal = MemoryJournal(Array("{}".utf8))
    ) {
        self.memory = memory
        self.hook = hook
    }

    func append(_ commits: [Commit], after version: Version) -> AppendResult {
        do {
            try hook(commits)
            return memory.append(commits, after: version)
        } catch is UnknownOutcome {
            return .unknown
        } catch {
            return .failed
        }
    }

    func commits(after version: Version, through last: Version, limit: Int) -> [Commit] {
        memory.commits(after: version, through: last, limit: limit)
    }
    func commit(version: Version) throws -> Commit? { try memory.commit(version: version) }
    func commit(id: String, by subject: String?) -> Commit? { memory.commit(id: id, by: subject) }
    func state(at version: Version) throws -> SavedState? { try memory.state(at: version) }
    func oldestState() -> Version { memory.oldestState() }
    func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {}
    func note(historyTime: Timestamp) {}
    func follow(_ appended: @escaping @Sendable () -> Void) { memory.follow(appended) }
    var failure: String? { memory.failure }
    var isShared: Bool { false }

    var bytesCount: Int? { nil }
    var isOutcomeOpen: Bool { false }
    func probe() {}
    func close(_ snapshot: Snapshot) {}
}
