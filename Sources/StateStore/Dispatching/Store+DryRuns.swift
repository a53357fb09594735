internal import Dispatch

extension UntypedStore {
    /// Computes the effect of a dry run on the published state, beside the turns of the store.
    ///
    /// The middleware, the commands and the reducers run on the caller's thread, perhaps at the same time as in a turn,
    /// but of one call at a time. A turn waits only for a look at the idempotency keys, which waits for a turn. A
    /// caller must not be on the store's queue.
    ///
    /// - Parameter client: see ``OutcomeTaker/client``.
    /// - Returns: any outcome but ``Outcome/committed(_:)``.
    package func dryRun(_ transaction: Transaction, of client: String? = nil) -> Outcome {
        let known = transaction.idempotency == nil ? nil : outcome(byKeyOf: transaction, of: client)
        let outcome: Outcome =
            switch known {
            // The real request would be answered with the receipt of the commit that is there.
            case .committed?: .wouldCommit(isChange: false, patch: Array("[]".utf8))
            case let refusal?: refusal
            case nil: compute(PendingTransaction(transaction, client: client) { _ in })
            }
        note(transaction, outcome)
        return outcome
    }

    private func compute(_ dryRun: PendingTransaction) -> Outcome {
        let steps = steps
        return dryRunQueue.sync {
            dryRunMark.withValue { mark in
                // A snapshot that is published is never taken back.
                let core = Core(dryRunOn: latest, of: domain, middleware: steps, limits: limits, mark: mark)
                // Actions of a middleware belong to a later turn, as in any turn.
                let turnMark = TurnMark(of: queue)
                return turnMark.with {
                    core.turn([dryRun], at: now(), monotonic: monotonicNow, clock: processorTime, inside: turnMark)
                }
            }
        }.outcomes[0]
    }
}
