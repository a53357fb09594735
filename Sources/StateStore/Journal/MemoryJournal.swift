internal import StateJSON
internal import Synchronization

/// A journal in memory, which several stores of one process can share.
///
/// The journal outlives its stores, but not the process. It keeps every commit, and only the first snapshot.
package final class MemoryJournal: Journal {
    private struct Content {
        var commits: [Commit] = []
        var followers: [@Sendable () -> Void] = []
        var failure: String?
    }

    private let content = Mutex(Content())
    private let start: Version
    private let initial: [UInt8]
    private let hasRoom: @Sendable (_ bytes: Int) -> Bool

    /// Begins with the state of a version, as ``SavedState`` has it; `hasRoom` takes room for the bytes of further
    /// commits, and returns whether there is any.
    package init(
        _ initial: [UInt8], version: Version = 0, commits: [Commit] = [],
        hasRoom: @escaping @Sendable (_ bytes: Int) -> Bool = { _ in true }
    ) {
        self.hasRoom = hasRoom
        content.withLock { $0.commits = commits }
        self.initial = initial
        start = version
    }

    package var latestVersion: Version { start + Version(content.withLock { $0.commits.count }) }

    /// Makes each later append fail with this reason, or succeed again for nil.
    package func fail(_ failure: String?) { content.withLock { $0.failure = failure } }

    package var failure: String? { content.withLock { $0.failure } }

    package var isShared: Bool { false }

    package var bytesCount: Int? { nil }

    package var isOutcomeOpen: Bool { false }

    package func append(_ commits: [Commit], after version: Version) -> AppendResult {
        let (result, followers) = content.withLock { content -> (AppendResult, [@Sendable () -> Void]) in
            guard content.failure == nil else { return (.failed, []) }
            guard version == start + Version(content.commits.count) else {
                return (.refused(after: version), [])
            }
            guard hasRoom(commits.reduce(0) { $0 + $1.weight }) else { return (.failed, []) }
            content.commits += commits
            return (.landed, content.followers)
        }
        for follower in followers { follower() }
        return result
    }

    package func follow(_ appended: @escaping @Sendable () -> Void) {
        content.withLock { $0.followers.append(appended) }
    }

    /// Does nothing: the journal does not outlive the process, and keeps its keys as long.
    package func note(historyTime: Timestamp) {}

    package func commits(after version: Version, through last: Version, limit: Int) -> [Commit] {
        guard version >= start else { return [] }
        return content.withLock { content in
            // A client may name any version.
            let count = min(version - start, Version(content.commits.count))
            return Array(content.commits.dropFirst(Int(count)).prefix(limit).prefix { $0.version <= last })
        }
    }

    package func commit(id: String, by subject: String?) -> Commit? {
        content.withLock { $0.commits.last { $0.has(clientID: id, by: subject) } }
    }

    package func state(at version: Version) throws -> SavedState? {
        guard version >= start else { return nil }
        var state = try PatchedState(parsing: initial, version: start)
        for commit in commits(after: start, through: version, limit: .max) { _ = try state.take(commit) }
        return state.saved
    }

    package func oldestState() -> Version { start }

    package func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {}

    package func probe() { fail(nil) }

    package func close(_ snapshot: Snapshot) {}
}
