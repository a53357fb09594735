internal import StateJSON
internal import Synchronization

/// The turn: the one pass over the waiting transactions, and its landing.
extension Store {
    /// How often the store computes a turn again because another writer has appended first, before it refuses the turn.
    private static var turnAttemptsMax: Int { 100 }

    /// Runs a turn in this order: take the transactions, apply them, append, publish, follow up, answer.
    func turn() {
        let pending = takePending()
        guard !pending.isEmpty else { return }
        for _ in 0..<Self.turnAttemptsMax where tryTurn(pending) { return }
        for pending in pending { answer(pending, .notRecorded) }
    }

    /// Computes a turn on the newest state, appends its commits and lands them.
    ///
    /// - Returns: false where another writer appended first; the store has adopted that writer's commits.
    private func tryTurn(_ pending: [PendingTransaction]) -> Bool {
        let before = latest
        let result = compute(pending)
        let commits = result.commits
        switch commits.isEmpty ? .landed : journal?.append(commits, after: before.version) ?? .landed {
        case .landed: land(result, of: pending, from: before)
        case .refused:
            if adoptForeignCommits() { return false }
            refuseAll(pending, result.outcomes)
        case .unknown: refuseAll(pending, result.outcomes)
        }
        return true
    }

    private func land(_ result: Core<State>.Turn, of pending: [PendingTransaction], from before: Snapshot<State>) {
        if !result.commits.isEmpty {
            adopt(result)
            publish(result.latest, result.commits)
        }
        if result.hasConsequences || subscribers.count > 0 { followUp(result, of: pending, from: before) }
        for (pending, outcome) in zip(pending, result.outcomes) { answer(pending, outcome) }
    }

    private func publish(_ snapshot: Snapshot<State>, _ commits: [Commit]) {
        hub.publish(snapshot, commits)
        journal?.offer(snapshot) { [hub] in hub.journalBegins(at: $0) }
    }

    /// Notifies the subscribers of each commit, queues its follow-ups for a later turn, and starts its effects.
    private func followUp(_ result: Core<State>.Turn, of pending: [PendingTransaction], from before: Snapshot<State>) {
        var causations: [Version: Causation] = [:]
        for (pending, outcome) in zip(pending, result.outcomes) {
            if let causation = pending.transaction.causation, case .committed(let receipt) = outcome {
                causations[receipt.version] = causation
            }
        }
        var before = before
        for consequence in result.consequences {
            let commit = consequence.commit
            let origin = causations[commit.version]
            let causation = Causation(
                cause: commit.id, root: origin?.root ?? commit.id, rootVersion: origin?.rootVersion ?? commit.version,
                depth: (origin?.depth ?? 0) + 1)
            for action in consequence.followUps { dispatchFollowUp([.init(action)], .single, causation) }
            let snapshot = unsafeDowncast(consequence.snapshot, to: Snapshot<State>.self)
            notify(commit, from: before, to: snapshot, causation)
            for effect in consequence.effects {
                for handler in domain.effects(of: effect.entry) {
                    run(handler, effect.action, snapshot.state, causation)
                }
            }
            before = snapshot
        }
        for (index, actions) in result.uncommittedFollowUps {
            for action in actions { dispatchLater(Transaction([.init(action)]), pending[index].transaction.causation) }
        }
    }

    private func answer(_ pending: PendingTransaction, _ outcome: Outcome) {
        pending.complete(outcome)
        guard let completed = pending.completed, case .committed(let receipt) = outcome else { return }
        guard !cascades.withLock({ $0.watch(receipt.version, as: pending.watcherID, completed) }) else { return }
        var report = CascadeReport()
        report.isComplete = true
        completed(report)
    }

    /// Answers the transactions of a turn whose commits are not in the journal.
    ///
    /// The store has not adopted the turn, so there is nothing to undo. A transaction before the turn's first commit keeps
    /// its outcome. Every later one was computed on a state that does not exist, so its outcome does not count.
    private func refuseAll(_ pending: [PendingTransaction], _ outcomes: [Outcome]) {
        let version = version
        var isOfNoState = false
        for (pending, outcome) in zip(pending, outcomes) {
            if case .committed(let receipt) = outcome {
                isOfNoState = isOfNoState || receipt.version > version
                answer(pending, receipt.version > version ? .notRecorded : outcome)
            } else {
                answer(pending, isOfNoState ? .notRecorded : outcome)
            }
        }
    }
}
