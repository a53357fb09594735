package import StateJSON
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

/// A state that applies the commits of a recorded history one by one: by their patches, or by their actions.
package protocol HistoryFollower: Sendable {
    var version: Version { get }

    /// Applies the next commit; the result has the patch and the changed pointers that this follower has computed.
    ///
    /// The state is undefined after an error.
    mutating func take(_ recorded: Commit) throws(HistoryFault) -> Commit

    /// The state with its schedule, as ``SavedState`` has them; O(n) in the size of the state.
    func bytes() throws -> [UInt8]
}

package struct HistoryFault: Error, Sendable, CustomStringConvertible {
    package let version: Version
    /// The types of its actions, or of the one action at fault.
    package let types: [String]
    package let pointer: JSONPointer?
    /// The fault, as a sentence without the version.
    package let detail: String
    package let rejectionCode: String?

    init(
        _ commit: Commit, type: String? = nil, at pointer: JSONPointer? = nil, rejectionCode: String? = nil,
        _ detail: String
    ) {
        self.rejectionCode = rejectionCode
        version = commit.version
        types = type.map { [$0] } ?? commit.types
        self.pointer = pointer
        self.detail = detail
    }

    package var description: String {
        let location = pointer.map { $0.tokens.isEmpty ? " at the root" : " at \($0)" } ?? ""
        return "version \(version) (\(Set(types).sorted().joined(separator: ", "))): \(detail)\(location)"
    }
}

/// A state that follows a history by its recorded patches, without a reducer or a domain.
package struct PatchedState: HistoryFollower {
    package private(set) var value: JSONValue
    package private(set) var schedule: ActionSchedule
    package private(set) var version: Version

    package init(_ state: JSONValue, version: Version, schedule: ActionSchedule = ActionSchedule()) {
        value = state
        self.version = version
        self.schedule = schedule
    }

    /// Begins with the state of a version, as ``SavedState`` has it.
    package init(parsing saved: [UInt8], version: Version) throws(JSONFault) {
        let saved = try SavedState(saved: saved)
        self.init(
            try JSONValue(parsing: saved.state, depthMax: 1000), version: version, schedule: saved.schedule)
    }

    /// The cost is O(n) in the size of the patch.
    package mutating func take(_ recorded: Commit) throws(HistoryFault) -> Commit {
        let pointers: [JSONPointer]
        do {
            let patch = try JSONValue(parsing: recorded.patch, depthMax: 1000)
            pointers = try value.places(changing: patch)
            try value.apply(patch: patch)
        } catch let fault as JSONFault {
            throw HistoryFault(recorded, "the patch cannot be read: \(fault.detail)")
        } catch let mismatch as PatchMismatch {
            throw HistoryFault(recorded, "the patch does not fit the state: \(mismatch.detail)")
        } catch {
            throw HistoryFault(recorded, "\(error)")
        }
        schedule.apply(recorded.schedule)
        version = recorded.version
        return recorded.with(patch: recorded.patch, changedPointers: pointers)
    }

    package var saved: SavedState { SavedState(value.text, schedule) }

    package func bytes() -> [UInt8] { saved.bytes }
}
