internal import StateJSON
internal import Synchronization

/// What a commit causes: actions in later turns, and effects.
extension Store {
    /// What subscribers are being told at this moment.
    ///
    /// - Returns: nil outside a notification.
    var currentCausation: Causation? { notification.withLock { $0?.causation } }

    /// Queues actions that a commit has caused, one transaction, unless its cascade has used up its budget.
    func follow(
        _ items: [Transaction.Item], _ form: Transaction.Form, _ causation: Causation,
        complete: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        var transaction = Transaction(items, form: form)
        transaction.causation = causation
        if let refusal = cascades.withLock({ $0.admit(causation, actions: items.count) }) {
            refused(transaction, .rejected(refusal, index: 0), causation)
            return complete(.rejected(refusal, index: 0))
        }
        submit(
            PendingTransaction(transaction) { [weak self, transaction] outcome in
                self?.ended(transaction, outcome, causation)
                complete(outcome)
            })
    }

    /// Queues what was dispatched inside a turn.
    func dispatchLater(_ transaction: Transaction, _ causation: Causation?) {
        if let causation { return follow(transaction.items, transaction.form, causation) }
        submit(PendingTransaction(transaction) { [weak self] in self?.reportIfRefused(transaction, $0, nil) })
    }

    /// Starts an effect, or ends one.
    func run(
        _ handler: Declaration<State>.EffectHandler, _ action: any Action, _ state: State, _ causation: Causation
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
                self.follow([.init(action)], .single, causation) { continuation.resume(returning: $0) }
            }
            return try Dispatched(outcome)
        }
        cascades.withLock { $0.begin(causation) }
        let isStarted = effects.start(id: handler.id) { [weak self] in
            do {
                try await work(dispatcher)
            } catch is CancellationError {
                // Whoever has cancelled it knows.
            } catch DispatchError.cancelled {
                // As above: it noticed when it dispatched.
            } catch {
                self?.report(.effectFailed(type: handler.type, reason: "\(error)", cause: causation.cause))
            }
            self?.end(causation)
        }
        guard !isStarted else { return }
        report(
            .effectFailed(
                type: handler.type, reason: "not started: the store is stopping or runs as many as it may",
                cause: causation.cause))
        end(causation)
    }

    private func ended(_ transaction: Transaction, _ outcome: Outcome, _ causation: Causation) {
        if case .committed(let receipt) = outcome {
            let caused = CascadeReport.Caused(
                version: receipt.version, id: receipt.id, cause: causation.cause,
                types: receipt.types, isChange: receipt.isChange)
            cascades.withLock { $0.note(causation, caused: caused) }
        } else {
            refused(transaction, outcome, causation)
        }
        end(causation)
    }

    private func refused(_ transaction: Transaction, _ outcome: Outcome, _ causation: Causation) {
        guard let refused = reportIfRefused(transaction, outcome, causation) else { return }
        cascades.withLock { $0.note(causation, refused: refused) }
    }

    /// Nobody waits for the outcome of what was dispatched in a turn: a refusal is reported instead.
    @discardableResult
    private func reportIfRefused(
        _ transaction: Transaction, _ outcome: Outcome, _ causation: Causation?
    ) -> CascadeReport.Refused? {
        do {
            _ = try Dispatched(outcome)
            return nil
        } catch {
            return refuse(transaction, error, causation)
        }
    }

    /// Reports that something which was dispatched in a turn is refused.
    @discardableResult
    func refuse(_ transaction: Transaction, _ error: DispatchError, _ causation: Causation?) -> CascadeReport.Refused {
        let refused = CascadeReport.Refused(
            type: transaction.items.compactMap(\.type).joined(separator: ","), cause: causation?.cause ?? "",
            code: error.code, detail: error.description)
        report(.followUpRefused(refused, root: causation?.root))
        return refused
    }

    private func end(_ causation: Causation) {
        guard let (watchers, report) = cascades.withLock({ $0.end(causation) }) else { return }
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
