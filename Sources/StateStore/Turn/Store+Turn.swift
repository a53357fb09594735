internal import Dispatch
internal import StateJSON
internal import Synchronization

/// The turn and the landing of its commits. The store computes further turns while earlier commits are being appended.
/// Clients, subscribers and effects see a turn only after it has landed, in the order of the turns; an outcome without
/// a commit waits as well where it was judged by a state that has not landed.
extension UntypedStore {
    func turn() {
        let taken = mailbox.withLock { $0.takeTurn() }
        var pending = taken.transactions
        let rest = taken.rule.takeRest(from: &pending)
        if !rest.isEmpty { mailbox.withLock { $0.putBack(rest) } }
        guard !pending.isEmpty else { return }
        let begun = observer?.clock()
        let measuredSince = taken.isMeasured ? processorTime() : nil
        let turn = compute(pending)
        if let measuredSince { endTurn(of: pending, taking: processorTime() - measuredSince) }
        if let observer, let begun {
            let ended = observer.clock()
            observer.computed(pending.count, ended - begun)
            if ended - begun > .milliseconds(100) {
                report(
                    .turnTookLong(
                        type: pending[0].transaction.type(at: 0) ?? "a creator", transactionsCount: pending.count,
                        time: ended - begun))
            }
            if !taken.isMeasured, ended - begun > TurnRule.longTime { endTurn(of: pending, taking: nil) }
        }
        guard let journal,
            !turn.commits.isEmpty || !inFlight.withLock({ $0.isEmpty }) || journal.isShared && turn.refusesSome
        else {
            return land([turn])
        }
        if inFlight.withLock({ $0.append(turn) }) {
            landings.enter()
            onLandingThread { self.landAll(in: journal) }
        }
    }

    /// Appends the turns in flight to the journal, all that wait at a time, until none is left; on the landing thread.
    private func landAll(in journal: any Journal) {
        while let turns = inFlight.withLock({ $0.beginLanding() }) {
            let commits = turns.count == 1 ? turns[0].commits : turns.flatMap(\.commits)
            // In a shared journal another writer may have made the state old by which something is refused.
            let isSure = commits.isEmpty && !(journal.isShared && turns.contains(where: \.refusesSome))
            let begun = isSure ? nil : observer?.clock()
            let result =
                isSure ? .landed : journal.append(commits, after: turns[0].before.cursor.version)
            if let observer, let begun { observer.appended(result, commits.count, observer.clock() - begun) }
            onQueue { endLanding(of: turns, result) }
        }
        landings.leave()
    }

    private func endLanding(of turns: [ComputedTurn], _ result: AppendResult) {
        switch result {
        case .landed:
            land(turns)
        case .refused(let landed): computeAgain(takeBack(turns), landedThrough: landed)
        case .failed: refuse(takeBack(turns))
        case .unknown: refuse(takeBack(turns), openThrough: turns.last { !$0.commits.isEmpty }?.result.version)
        }
        if inFlight.withLock({ $0.hasMissedForeignCommits && $0.takeMissedForeignCommits() }) {
            _ = adoptForeignCommits()
        }
    }

    private func land(_ turns: [ComputedTurn]) {
        let commits = turns.count == 1 ? turns[0].commits : turns.flatMap(\.commits)
        var dropped = Dropped()
        if !commits.isEmpty {
            let snapshot = turns[turns.count - 1].result.latest
            dropped = hub.publish(
                snapshot, commits, by: Set(turns.lazy.flatMap { $0.pending.lazy.compactMap(\.taker.client) }))
            journal?.offer(snapshot) { [hub] in hub.journalBegins(at: $0) }
            observer?.landed(commits.count)
            // The looks at a schedule that stays as it is go on by themselves.
            if commits.contains(where: { $0.schedule != nil }) { armTimer() }
        }
        release(turns)
        if journal != nil { inFlight.withLock { $0.endLanding() } }
        if let observer {
            var tally = ActionTally(observer)
            for turn in turns {
                for index in turn.pending.indices {
                    tally.add(turn.pending[index].transaction, turn.result.outcomes[index])
                }
            }
            tally.end()
        }
        for turn in turns {
            let hasFollowUps = turn.result.hasConsequences || subscribers.openCount.load(ordering: .acquiring) > 0
            let roots = hasFollowUps ? followUp(turn) : [:]
            for index in turn.pending.indices {
                let (taker, outcome) = (turn.pending[index].taker, turn.result.outcomes[index])
                taker.take(outcome)
                if let cascade = taker.cascade { answer(cascade, outcome, roots[index]) }
            }
        }
        // The parts of a long payload, and of a large state, are freed one by one, which would take as long as a turn. A moment
        // later nobody else has them any more.
        let memory = turns[0].before.memoryBytes
        if turns.contains(where: { $0.isLong })
            || memory > 1 << 20 && (!dropped.past.isEmpty || memory - latest.memoryBytes > 1 << 20)
        {
            disposal.asyncAfter(deadline: .now() + .milliseconds(100)) { [dropped] in
                withExtendedLifetime((turns, dropped)) {}
            }
        }
    }

    /// Makes the published state the newest computed one again, where an append has failed.
    private func takeBack(_ turns: [ComputedTurn]) -> [ComputedTurn] {
        let all = turns + inFlight.withLock { $0.takeBack() }
        core.goBack(to: latest, without: all.flatMap(\.commits))
        return all
    }

    /// Adopts the commits that another writer appended first, and computes the refused transactions behind them.
    ///
    /// Commits that have landed all the same are adopted as those of another writer, so their effects do not start.
    private func computeAgain(_ turns: [ComputedTurn], landedThrough landed: Version) {
        guard inFlight.withLock({ $0.mayComputeAgain() }), adoptForeignCommits() else {
            return refuse(turns, openThrough: landed)
        }
        var again: [PendingTransaction] = []
        for turn in turns {
            for (pending, outcome) in zip(turn.pending, turn.result.outcomes) {
                if case .committed(let receipt) = outcome, !receipt.isReplay, receipt.version <= landed {
                    release(1)
                    end(pending, outcome)
                } else {
                    again.append(pending)
                }
            }
        }
        guard !again.isEmpty else { return }
        _ = inFlight.withLock { [turn = compute(again)] in $0.append(turn) }
    }

    /// The roots of the cascades that swallowed actions have begun, by the indices of their transactions.
    private func followUp(_ turn: ComputedTurn) -> [Int: Version] {
        let (pending, result) = (turn.pending, turn.result)
        var causations: [Version: Causation] = [:]
        for (pending, outcome) in zip(pending, result.outcomes) {
            if let causation = pending.transaction.causation, case .committed(let receipt) = outcome {
                causations[receipt.version] = causation
            }
        }
        var before = turn.before
        for (commit, consequence) in zip(result.commits, result.consequences) {
            let origin = causations[commit.version]
            let causation = Causation(
                cause: commit.id, root: origin?.root ?? commit.id,
                rootVersion: origin.flatMap { $0.depth == 0 ? nil : $0.rootVersion } ?? commit.version,
                depth: (origin?.depth ?? 0) + 1, subject: commit.by, chain: origin?.chain)
            for followUp in consequence.followUps { dispatchFollowUp(followUp, causation) }
            let snapshot = consequence.snapshot
            notify(commit, from: before, to: snapshot, causation)
            for (entry, action) in consequence.effects { runEffects(of: entry, action, snapshot.state, causation) }
            before = snapshot
        }
        var roots: [Int: Version] = [:]
        for (index, followUps) in result.uncommittedFollowUps {
            let cause = pending[index].transaction
            let causation =
                cause.causation ?? cascades.withLock { $0.causationWithoutCommit(subject: cause.subject) }
            if cause.causation == nil { roots[index] = causation.rootVersion }
            for followUp in followUps { dispatchFollowUp(followUp, causation) }
        }
        return roots
    }

    /// The root `swallowed` is that of the cascade that a swallowed action has begun.
    private func answer(_ cascade: AwaitedCascade, _ outcome: Outcome, _ swallowed: Version? = nil) {
        guard outcome.mayBeginCascade else { return }
        let root = if case .committed(let receipt) = outcome { receipt.version } else { swallowed }
        let isWatched = cascades.withLock { cascades in
            root.map { cascades.watch($0, as: cascade.watcherID) { cascade.completed(outcome, $0) } } ?? false
        }
        if !isWatched { cascade.completed(outcome, CascadeReport(isComplete: true)) }
    }

    /// Answers the transactions of turns whose commits have not landed.
    ///
    /// One before the first commit keeps its outcome, unless others may have written meanwhile, and so does the replay
    /// of a landed commit; every other one was computed on a state that does not exist. Commits up to `open` may be in
    /// the journal.
    private func refuse(_ turns: [ComputedTurn], openThrough open: Version? = nil) {
        release(turns)
        let version = version
        var isOfNoState = journal?.isShared ?? false
        for turn in turns {
            for (pending, outcome) in zip(turn.pending, turn.result.outcomes) {
                guard case .committed(let receipt) = outcome else {
                    end(pending, isOfNoState ? .notRecorded : outcome)
                    continue
                }
                guard receipt.version > version else {
                    end(pending, outcome)
                    continue
                }
                isOfNoState = true
                let isOpen = open.map { receipt.version <= $0 } ?? false
                end(pending, isOpen ? .unknown(id: pending.transaction.clientIDs.first) : .notRecorded)
            }
        }
    }

    private func end(_ pending: PendingTransaction, _ outcome: Outcome) {
        note(pending.transaction, outcome)
        pending.taker.take(outcome)
        if let cascade = pending.taker.cascade { answer(cascade, outcome) }
    }

    func note(_ transaction: Transaction, _ outcome: Outcome) {
        guard let observer else { return }
        var tally = ActionTally(observer)
        tally.add(transaction, outcome)
        tally.end()
    }
}
