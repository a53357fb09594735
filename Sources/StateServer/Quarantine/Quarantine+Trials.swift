internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Actions that may have ended another server of the cluster, which has left no page of its own.
///
/// A server that sends an action on and loses the server that carries it out says so in the list. Whoever carries the action
/// out next says that first, so that a second end sets it aside, whether anybody has seen it or not.
extension Quarantine {
    /// What a server may do with an action.
    enum Verdict: Equatable, Sendable {
        case passes
        /// It is set aside: the name for the operator.
        case refused(String)
        /// Another server tries it, or this one does.
        case isTried
        /// The list cannot be changed.
        case unknown
    }

    /// How long a trial may take before it counts as the end of the server that has begun it.
    private static let trialTime = Duration.seconds(10)

    /// Records that another server was lost while it carried out an action.
    ///
    /// - Parameter done: called when the list has it, or cannot be changed.
    func recordLoss(of server: String, during dispatch: DispatchRequest, then done: @escaping @Sendable () -> Void) {
        guard let record = MarkPage.Record(dispatch) else { return done() }
        changes.change({ $0.recordLoss(of: server, during: record) }, then: { _ in done() })
    }

    /// Decides whether this server may carry out an action; one that is suspected is noted in the list first.
    ///
    /// - Parameters:
    ///   - isSuspected: whether the action may have ended another server of which nobody knows.
    ///   - done: takes the verdict where it comes later.
    /// - Returns: the verdict; nil where it comes later.
    func judge(
        _ dispatch: DispatchRequest, isSuspected: Bool, orLater done: @escaping @Sendable (Verdict) -> Void
    ) -> Verdict? {
        guard isSuspected || hasEntries, let record = MarkPage.Record(dispatch) else { return .passes }
        let (known, since) = entry(of: record.identity)
        if let entry = known, entry.state == .quarantined { return .refused(entry.id) }
        guard isSuspected || known?.state == .suspected else { return .passes }
        guard trials.withLock({ $0.insert(record.identity).inserted }) else { return .isTried }
        let isOver = since.map { $0.duration(to: .now) > Self.trialTime } ?? false
        let found = Mutex(Verdict.unknown)
        changes.change { [name] entries in
            if isOver { entries.setAside(record.identity) }
            let verdict = entries.beginTrial(of: record, by: name)
            found.withLock { $0 = verdict }
        } then: { [self] isWritten in
            let verdict = isWritten ? found.withLock(\.self) : .unknown
            if case .passes = verdict {} else { _ = trials.withLock { $0.remove(record.identity) } }
            done(verdict)
        }
        return nil
    }

    /// Drops from the list what this server has tried and carried out without harm.
    ///
    /// - Parameter isReduced: whether the action has reached the reducers.
    func endTrial(of dispatch: DispatchRequest, isReduced: Bool) {
        guard trials.withLock({ !$0.isEmpty }), let identity = MarkPage.Record(dispatch)?.identity,
            trials.withLock({ $0.remove(identity) }) != nil
        else { return }
        if isReduced { return changes.release(identity) }
        changes.change { [name] in $0.endTrial(of: identity, by: name) }
    }
}

extension MarkPage.Record {
    /// What identifies a request; nil where the turn alone knows its actions.
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
