internal import StateJSON
internal import Synchronization

/// What a commit causes: actions in later turns, and effects.
extension Store {
    /// What subscribers are being told at this moment.
    ///
    /// - Returns: nil outside a notification.
    var lineageNow: Lineage? { telling.withLock { $0?.lineage } }

    /// Queues actions that a commit has caused, one transaction, unless its cascade has used up its budget.
    func follow(
        _ items: [Submission.Item], _ form: Submission.Form, _ lineage: Lineage,
        complete: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        var submission = Submission(items, form: form)
        submission.lineage = lineage
        if let refusal = cascades.withLock({ $0.admit(lineage, actions: items.count) }) {
            refused(submission, .rejected(refusal, index: 0), lineage)
            return complete(.rejected(refusal, index: 0))
        }
        submit(
            Envelope(submission) { [weak self, submission] outcome in
                self?.ended(submission, outcome, lineage)
                complete(outcome)
            })
    }

    /// Queues what was dispatched inside a turn.
    func dispatchLater(_ submission: Submission, _ lineage: Lineage?) {
        if let lineage { return follow(submission.items, submission.form, lineage) }
        submit(Envelope(submission) { [weak self] in self?.reportIfRefused(submission, $0, nil) })
    }

    /// Starts an effect, or ends one.
    func run(
        _ handler: Declaration<State>.EffectHandler, _ action: any Action, _ state: State, _ lineage: Lineage
    ) {
        guard let start = handler.start else {
            _ = handler.id.map(effects.cancel)
            return
        }
        guard let work = start(action, state) else { return }
        let dispatcher = Dispatcher { [weak self] action async throws(DispatchError) in
            guard !Task.isCancelled else { throw .cancelled }
            guard let self else { throw .draining }
            let outcome = await withCheckedContinuation { continuation in
                self.follow([.init(action)], .single, lineage) { continuation.resume(returning: $0) }
            }
            return try Dispatched(outcome)
        }
        cascades.withLock { $0.begin(lineage) }
        let isStarted = effects.start(id: handler.id) { [weak self] in
            do {
                try await work(dispatcher)
            } catch is CancellationError {
                // Whoever has cancelled it knows.
            } catch DispatchError.cancelled {
                // As above: it noticed when it dispatched.
            } catch {
                self?.report(.effectFailed(type: handler.type, reason: "\(error)", cause: lineage.cause))
            }
            self?.end(lineage)
        }
        guard !isStarted else { return }
        report(
            .effectFailed(
                type: handler.type, reason: "not started: the store is stopping or runs as many as it may",
                cause: lineage.cause))
        end(lineage)
    }

    private func ended(_ submission: Submission, _ outcome: Outcome, _ lineage: Lineage) {
        if case .committed(let receipt) = outcome {
            let caused = CascadeReport.Caused(
                version: receipt.version, id: receipt.id, cause: lineage.cause,
                types: receipt.types, isChange: receipt.isChange)
            cascades.withLock { $0.note(lineage, caused: caused) }
        } else {
            refused(submission, outcome, lineage)
        }
        end(lineage)
    }

    private func refused(_ submission: Submission, _ outcome: Outcome, _ lineage: Lineage) {
        guard let refused = reportIfRefused(submission, outcome, lineage) else { return }
        cascades.withLock { $0.note(lineage, refused: refused) }
    }

    /// Nobody waits for the outcome of what was dispatched in a turn: a refusal is reported instead.
    @discardableResult
    private func reportIfRefused(
        _ submission: Submission, _ outcome: Outcome, _ lineage: Lineage?
    ) -> CascadeReport.Refused? {
        do {
            _ = try Dispatched(outcome)
            return nil
        } catch {
            return refuse(submission, error, lineage)
        }
    }

    /// Reports that something which was dispatched in a turn is refused.
    @discardableResult
    func refuse(_ submission: Submission, _ error: DispatchError, _ lineage: Lineage?) -> CascadeReport.Refused {
        let refused = CascadeReport.Refused(
            type: submission.items.compactMap(\.type).joined(separator: ","), cause: lineage?.cause ?? "",
            code: error.code, detail: error.description)
        report(.followUpRefused(refused, root: lineage?.root))
        return refused
    }

    private func end(_ lineage: Lineage) {
        guard let (watchers, report) = cascades.withLock({ $0.end(lineage) }) else { return }
        for watcher in watchers { watcher(report) }
    }

    /// What the commit of a version has caused so far; nil when nothing of it is under way.
    package func cascade(of root: Version) -> CascadeReport? { cascades.withLock { $0.report(of: root) } }

    /// Cancels the effect that runs under an ID; false when there is none.
    @discardableResult
    public func cancel(effect id: String) -> Bool { effects.cancel(id) }
}

/// What a store has to tell whoever runs it.
public enum StoreEvent: Sendable {
    /// An action that a subscriber, a middleware, an effect or, against the rules, a reducer dispatched was not committed;
    /// `root` names the cascade.
    case followUpRefused(CascadeReport.Refused, root: String?)
    /// An effect threw, or could not be started.
    case effectFailed(type: String, reason: String, cause: String)
    /// The commits that another writer has appended cannot be read, or do not fit this store's domain.
    case journalUnreadable(reason: String)
}
