internal import Dispatch
internal import StateJSON
internal import Synchronization

/// Commits that another writer has appended to the journal.
extension Store {
    func takeInLater() {
        queue.async { TurnMark.with(ObjectIdentifier(self)) { _ = self.takeIn() } }
    }

    /// Makes the commits of other writers this store's own, in order: they are published and subscribers are told.
    ///
    /// No reducer, middleware or effect runs for them: they have run where the commits were made. Each commit costs what
    /// the whole state holds.
    ///
    /// Called on the store's queue.
    ///
    /// - Returns: whether there were any.
    func takeIn() -> Bool {
        guard let journal else { return false }
        var hasAny = false
        do {
            while true {
                let before = latest
                let commits = try journal.commits(after: before.version, through: .max, limit: 1000)
                guard !commits.isEmpty else { return hasAny }
                hasAny = true
                try takeIn(commits, after: before)
            }
        } catch {
            report(.journalUnreadable(reason: "\(error)"))
            return hasAny
        }
    }

    private func takeIn(_ commits: [Commit], after before: Snapshot<State>) throws {
        var patched = try PatchedState(parsing: before.whole(), version: before.version)
        var before = before
        for commit in commits {
            let commit = try patched.take(commit)
            let next = try core.withLock { try $0.take(commit, state: model.state(from: patched.text())) }
            hub.publish(next, [commit])
            tell(commit, from: before, to: next, Causation(foreign: commit))
            before = next
        }
    }
}
