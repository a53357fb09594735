internal import StateJSON
internal import Synchronization

extension UntypedStore {
    var currentCausation: Causation? { notification.withLock { $0?.causation } }

    func dispatchFollowUp(
        _ followUp: Transaction, _ causation: Causation, complete: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        let transaction = followUp.caused(by: causation)
        if let refusal = cascades.withLock({ $0.register(causation, actions: followUp.items.count) }) {
            reportIfRefused(transaction, .rejected(refusal, index: 0), causation)
            return complete(.rejected(refusal, index: 0))
        }
        submit(
            PendingTransaction(transaction) { [weak self, transaction] outcome in
                self?.ended(transaction, outcome, causation)
                complete(outcome)
            })
    }

    package var isAtRest: Bool { effects.count == 0 && cascades.withLock { $0.isEmpty } }

    package var runningEffects: [String] { effects.names }

    func runEffects(of entry: ActionEntry, _ action: any Action, _ state: StateBox, _ causation: Causation) {
        for handler in entry.effects {
            if let start = handler.start {
                guard let work = start(action, state) else { continue }
                run(work, of: entry.type, id: handler.id, causation)
            } else if let id = handler.id {
                effects.cancel(id)
            }
        }
    }

    func run(_ work: @escaping EffectWork, of name: String, id: String?, _ causation: Causation?) {
        let dispatcher = Dispatcher(subject: causation?.subject) { [weak self] action async throws(DispatchError) in
            guard !Task.isCancelled else { throw .cancelled }
            guard let self else { throw .draining }
            guard let causation else { return try await self.dispatch(Transaction([.init(action)]), .turn) }
            let outcome = await withCheckedContinuation { continuation in
                self.dispatchFollowUp(Transaction([.init(action)]), causation) { continuation.resume(returning: $0) }
            }
            return try Dispatched(outcome)
        }
        if let causation { cascades.withLock { $0.begin(causation) } }
        let isStarted = effects.start(id: id, of: name) { [weak self] in
            do {
                try await work(dispatcher)
            } catch is CancellationError {
                // Cancelling an effect is no failure of it.
            } catch DispatchError.cancelled {
                // The effect was cancelled before it dispatched.
            } catch {
                self?.report(.effectFailed(type: name, reason: "\(error)", cause: causation?.cause ?? ""))
            }
            if let causation { self?.end(causation) }
        }
        guard !isStarted else { return }
        report(
            .effectFailed(
                type: name, reason: "not started: the store is stopping or runs as many as it may",
                cause: causation?.cause ?? ""))
        if let causation { end(causation) }
    }

    private func ended(_ transaction: Transaction, _ outcome: Outcome, _ causation: Causation) {
        if case .committed(let receipt) = outcome {
            let caused = CascadeReport.Caused(
                version: receipt.version, id: receipt.id, cause: causation.cause ?? "",
                types: receipt.types, isChange: receipt.isChange)
            cascades.withLock { $0.note(causation, caused: caused) }
        } else {
            reportIfRefused(transaction, outcome, causation)
        }
        end(causation)
    }

    /// Reports the refusal of a follow-up: no caller waits for its outcome.
    func reportIfRefused(_ transaction: Transaction, _ outcome: Outcome, _ causation: Causation?) {
        do { _ = try Dispatched(outcome) } catch { refuse(transaction, error, causation) }
    }

    func refuse(_ transaction: Transaction, _ error: DispatchError, _ causation: Causation?) {
        let refused = CascadeReport.Refused(
            type: transaction.items.indices.compactMap(transaction.type).joined(separator: ","),
            cause: causation?.cause ?? "",
            code: error.code, detail: error.description)
        report(.followUpRefused(refused, root: causation?.root))
        if let causation { cascades.withLock { $0.note(causation, refused: refused) } }
    }

    private func end(_ causation: Causation) {
        guard let (watchers, report) = cascades.withLock({ $0.end(causation) }) else { return }
        for watcher in watchers { watcher(report) }
    }

    package func stopAwaitingCascade(of root: Version, _ watcherID: UInt64) {
        cascades.withLock { $0.stopWatching(root, as: watcherID) }
    }

    package func cascade(of root: Version) -> CascadeReport? { cascades.withLock { $0.currentReport(of: root) } }
}

/// A failure that a store reports because no caller waits for it.
public enum StoreEvent: Sendable {
    /// The store did not commit an action that a subscriber, a middleware, an effect or, against the rules, a reducer
    /// dispatched; `root` is the ID of the commit that began the cascade.
    case followUpRefused(CascadeReport.Refused, root: String?)
    /// An effect threw an error, or the store could not start it.
    case effectFailed(type: String, reason: String, cause: String)
    /// The store cannot read the commits of another writer.
    case journalUnreadable(reason: String)
    /// The commits of another writer do not fit the domain: the state stays as it is.
    case cannotFollow(reason: String)
    /// Actions were due while no process dispatched them, the first of them so long ago; they are dispatched now.
    case scheduledLate(count: Int, by: Duration)
    /// A view has no value, because it reads itself.
    case viewFailed(reason: String)
    /// A turn took more than 100 ms, in which all other actions waited; `type` is that of its first action.
    case turnTookLong(type: String, transactionsCount: Int, time: Duration)
}
