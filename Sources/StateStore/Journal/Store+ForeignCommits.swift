internal import StateJSON
internal import Synchronization

/// A history that a store cannot follow any more.
package struct LostHistory: Sendable {
    package var failure: DomainFailure
    package var since: Instant
}

extension UntypedStore {
    /// The adoption follows the landing of the turns in flight, whose append the commits of other writers refuse.
    func adoptForeignCommitsLater() {
        onQueueLater {
            if self.inFlight.withLock({ $0.mayAdoptForeignCommits() }) { _ = self.adoptForeignCommits() }
        }
    }

    /// Applies patches, and runs no reducer, middleware or effect: the store that made the commits has run its own.
    ///
    /// A caller must be on the store's queue. Each commit costs what its patch touches.
    func adoptForeignCommits() -> Bool {
        guard let journal else { return false }
        let start = latest.version
        do {
            while true {
                let before = latest
                let commits = try journal.commits(after: before.version, through: .max, limit: 1000)
                guard !commits.isEmpty else { break }
                try adopt(commits, after: before)
            }
        } catch let failure as DomainFailure {
            stopFollowing(failure)
        } catch {
            report(.journalUnreadable(reason: "\(error)"))
        }
        return latest.version > start
    }

    private func stopFollowing(_ failure: DomainFailure) {
        let found = LostHistory(failure: failure, since: monotonicNow())
        let isNew = lost.withLock { lost in
            guard lost == nil else { return false }
            lost = found
            return true
        }
        guard isNew else { return }
        report(.cannotFollow(reason: failure.detail))
        // Answers tell from now on how old they may be.
        hub.endGeneration()
    }

    private func adopt(_ commits: [Commit], after before: Snapshot) throws {
        var before = before
        for commit in commits {
            let (state, tree) = try domain.state(of: before, following: commit)
            let next = core.adopt(commit, state, tree)
            hub.publish(next, [commit])
            notify(commit, from: before, to: next, Causation(foreign: commit))
            before = next
        }
        if !before.schedule.isEmpty { armTimer() }
    }
}
