internal import DequeModule
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Actions that may have ended another server of the cluster, which has left no page of its own.
///
/// A server that sends an action on and loses the server that carries it out says so in the list. Whoever carries the action
/// out next says that first, so that a second end sets it aside, whether anybody has seen it or not.
extension Quarantine {
    enum Verdict: Equatable, Sendable {
        case passes
        case refused(String)
        /// Another server tries it, or this one does.
        case isTried
        /// The list cannot be changed.
        case unknown
    }

    /// The list has the loss, or cannot be changed, when `done` is called.
    func recordLoss(of server: String, during dispatch: DispatchRequest, then done: @escaping @Sendable () -> Void) {
        guard let record = MarkPage.Record(dispatch) else { return done() }
        changes.change({ $0.recordLoss(of: server, during: record) }, then: { _ in done() })
    }

    /// The suspected actions of this server, which tries one after the other: the next ones would wait behind one that ends
    /// the server, and be set aside with it.
    struct Trials {
        fileprivate struct Trial: Sendable {
            let record: MarkPage.Record
            let done: @Sendable (Verdict) -> Void
        }

        fileprivate(set) var current: (identity: TransactionIdentity, since: ContinuousClock.Instant)?
        fileprivate var waiting: Deque<Trial> = []

        init() {}

        fileprivate func has(_ identity: TransactionIdentity) -> Bool {
            current?.identity == identity || waiting.contains { $0.record.identity == identity }
        }

        fileprivate mutating func next() -> Trial? {
            if let current, current.since.duration(to: .now) < trialTime { return nil }
            let next = waiting.popFirst()
            current = next.map { ($0.record.identity, .now) }
            return next
        }

        fileprivate mutating func end(_ identity: TransactionIdentity) -> Bool {
            guard current?.identity == identity else { return false }
            current = nil
            return true
        }
    }

    /// Notes a suspected action in the list before this server carries it out; nil means that `done` takes the verdict.
    ///
    /// If the action passes later, ``endTrial(of:isReduced:)`` has to follow.
    func judge(
        _ dispatch: DispatchRequest, isSuspected: Bool, orLater done: @escaping @Sendable (Verdict) -> Void
    ) -> Verdict? {
        guard isSuspected || hasEntries, let record = MarkPage.Record(dispatch) else { return .passes }
        let entry = entry(of: record.identity).entry
        if let entry, entry.state == .quarantined { return .refused(entry.id) }
        guard isSuspected || entry?.state == .suspected else { return .passes }
        let isNew = trials.withLock { trials in
            guard !trials.has(record.identity) else { return false }
            trials.waiting.append(.init(record: record, done: done))
            return true
        }
        guard isNew else { return .isTried }
        beginTrial()
        return nil
    }

    private func beginTrial() {
        guard let next = trials.withLock({ $0.next() }) else { return }
        let record = next.record
        let found = Mutex((verdict: Verdict.unknown, entries: [QuarantineFile.Entry]()))
        let (entry, since) = entry(of: record.identity)
        let isOver = since.map { $0.duration(to: .now) > trialTime } ?? false
        // Of a load the page names a line, which the list does not know.
        let trial = QuarantineFile.Trial(
            server: server, process: process, isOnPage: hasPage && record.identity.kind != .content)
        changes.change { entries in
            if isOver { entries.setAside(record.identity, triedIn: entry?.tried) }
            let verdict = entries.begin(trial, of: record)
            found.withLock { $0 = (verdict, entries) }
        } then: { [self] isWritten in
            let (latest, entries) = found.withLock(\.self)
            let verdict = isWritten ? latest : .unknown
            // The turn refuses it: a server that has been killed may have committed it, and then its retry has an answer.
            if case .refused = verdict { take(entries) }
            // The list may have the trial all the same.
            if !isWritten {
                changes.change { $0.endTrial(of: record.identity, by: trial.server, process: trial.process) }
            }
            next.done(verdict)
            guard verdict != .passes else { return }
            // Where the list cannot be changed, the others need not wait for it either.
            let others = trials.withLock { trials in
                _ = trials.end(record.identity)
                return isWritten ? [] : exchange(&trials.waiting, with: [])
            }
            for other in others { other.done(.unknown) }
            beginTrial()
        }
    }

    /// Drops from the list what this server has tried and carried out without harm, and what is set aside but committed.
    func endTrial(of dispatch: DispatchRequest, isReduced: Bool) {
        guard mayTry, let identity = MarkPage.Record(dispatch)?.identity else { return }
        guard trials.withLock({ $0.end(identity) }) else {
            if isReduced, entry(of: identity).entry?.state == .quarantined { changes.release(identity) }
            return
        }
        if isReduced {
            changes.release(identity)
        } else {
            changes.change { [server, process] in $0.endTrial(of: identity, by: server, process: process) }
        }
        beginTrial()
    }
}

/// How long a trial may take before it counts as the end of the server that has begun it.
private let trialTime = Duration.seconds(10)

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
