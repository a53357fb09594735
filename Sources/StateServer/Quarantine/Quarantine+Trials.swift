internal import Dispatch
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Actions that may have ended another server of the cluster, which has left no page of its own.
///
/// Whoever carries out an action after a loss says so in the list first, so that a second end sets it aside.
extension Quarantine {
    enum Verdict: Equatable, Sendable {
        case passes
        case refused(String)
        case isTried
        case unknown
    }

    struct Trials {
        fileprivate(set) var current: (identity: TransactionIdentity, end: DispatchGroup)?
        fileprivate var failed: ContinuousClock.Instant?
    }

    /// The list has the loss, or cannot be changed, when `done` is called.
    func recordLoss(of server: String, during dispatch: DispatchRequest, then done: @escaping @Sendable () -> Void) {
        guard let record = MarkPage.Record(dispatch) else { return done() }
        let end = ContinuousClock.now + .seconds(2)
        // Later on the server may be there again, and try the action.
        changes.change { if .now < end { $0.recordLoss(of: server, during: record) } }
        changes.afterwards(done)
    }

    /// Notes a suspected action in the list before this server carries it out; nil means that `done` takes the verdict.
    ///
    /// If the action passes later, ``endTrial(of:isReduced:)`` has to follow.
    func judge(
        _ dispatch: DispatchRequest, isSuspected: Bool, orLater done: @escaping @Sendable (Verdict) -> Void
    ) -> Verdict? {
        guard isSuspected || hasEntries, let record = MarkPage.Record(dispatch) else { return .passes }
        let entry = entry(of: record.identity)?.entry
        if let entry, entry.state == .quarantined { return .refused(entry.id) }
        guard isSuspected || entry?.state == .suspected else { return .passes }
        let asked = ContinuousClock.now
        trialsQueue.async { self.carryOut(record, since: asked, done) }
        return nil
    }

    /// Carries out one suspected action at a time: others would wait behind one that ends the server, and be blamed.
    private func carryOut(
        _ record: MarkPage.Record, since asked: ContinuousClock.Instant, _ done: (Verdict) -> Void
    ) {
        // Where the list cannot be changed, the others need not wait for it either.
        guard trials.withLock({ $0.failed.map { $0 < asked } ?? true }) else { return done(.unknown) }
        let verdict = begin(record)
        guard verdict == .passes else { return done(verdict) }
        let end = DispatchGroup()
        end.enter()
        trials.withLock { $0.current = (record.identity, end) }
        done(.passes)
        guard end.wait(timeout: .now() + trialSeconds) == .timedOut else { return }
        // The next one need not wait for it any longer, and a group must be left.
        trials.withLock { $0.current.take() }?.end.leave()
    }

    private func begin(_ record: MarkPage.Record) -> Verdict {
        let known = entry(of: record.identity)
        let trial = trial(of: record.identity)
        var (verdict, latest) = (Verdict.unknown, [QuarantineEntry]())
        let isWritten = changes.make { entries in
            if let known, known.entry.tried != trial, known.triedSince.duration(to: .now) > .seconds(trialSeconds) {
                entries.setAside(record.identity, triedIn: known.entry.tried)
            }
            verdict = entries.begin(trial, of: record)
            latest = entries
        }
        guard isWritten else {
            trials.withLock { $0.failed = .now }
            // The list may have the trial all the same.
            changes.change { $0.end(trial, of: record.identity) }
            return .unknown
        }
        // The turn refuses it: a server that has been killed may have committed it, and then its retry has an answer.
        if case .refused = verdict { take(latest) }
        return verdict
    }

    private func trial(of identity: TransactionIdentity) -> QuarantineEntry.Trial {
        // Of a load the page names a line, which the list does not know.
        .init(server: server, process: process, isOnPage: hasPage && identity.kind != .content)
    }

    func endTrial(of dispatch: DispatchRequest, isReduced: Bool) {
        guard mayTry, let identity = MarkPage.Record(dispatch)?.identity else { return }
        let end = trials.withLock { $0.current?.identity == identity ? $0.current.take()?.end : nil }
        let (entry, trial) = (entry(of: identity)?.entry, trial(of: identity))
        // One that took long has lost its place, but the list has it still.
        let isOwn = end != nil || entry?.tried == trial
        if isReduced, isOwn || entry?.state == .quarantined {
            changes.release(identity)
        } else if isOwn {
            changes.change { $0.end(trial, of: identity) }
        }
        end?.leave()
    }
}

/// A longer trial counts as the end of the server that has begun it.
private let trialSeconds = 10.0

extension MarkPage.Record {
    /// The identity of a request, or nil if the turn alone knows its actions.
    fileprivate init?(_ dispatch: DispatchRequest) {
        switch dispatch.content {
        case .one(let transaction): self.init(transaction)
        case .lines(let lines):
            let transactions = lines.compactMap { try? $0.content.get() }
            guard let first = transactions.first, let identity = TransactionIdentity(transactions) else { return nil }
            self.init(identity: identity, type: first.firstType, name: "")
        }
    }
}
