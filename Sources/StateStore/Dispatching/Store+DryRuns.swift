internal import Dispatch

extension Store {
    /// Computes the effect of each dry run on the published state, beside the turns of the store.
    ///
    /// The middleware, the commands and the reducers run on the caller's thread, perhaps at the same time as in a turn,
    /// but of one call at a time. A turn waits only for a look at the idempotency keys, which waits for a turn. A
    /// caller must not be on the store's queue.
    ///
    /// - Parameters:
    ///   - transactions: dry runs, each of which applies to the same state.
    ///   - client: see ``OutcomeTaker/client``.
    /// - Returns: an outcome for each, never ``Outcome/committed(_:)``.
    package func dryRun(_ transactions: ArraySlice<Transaction>, of client: String? = nil) -> [Outcome] {
        let pending = transactions.map { PendingTransaction($0, client: client) { _ in } }
        let known = transactions.contains { $0.idempotency != nil } ? outcomes(byKeysOf: pending) : []
        let free = known.isEmpty ? pending : zip(pending, known).filter { $0.1 == nil }.map(\.0)
        var computed = compute(free)[...]
        let outcomes: [Outcome] =
            known.isEmpty
            ? Array(computed)
            : known.compactMap { outcome in
                switch outcome {
                // The real request would be answered with the receipt of the commit that is there.
                case .committed?: .wouldCommit(isChange: false, patch: Array("[]".utf8))
                case let refusal?: refusal
                case nil: computed.popFirst()
                }
            }
        for (transaction, outcome) in zip(transactions, outcomes) { note(transaction, outcome) }
        return outcomes
    }

    private func compute(_ dryRuns: [PendingTransaction]) -> [Outcome] {
        let middleware = middleware
        var outcomes: [Outcome] = []
        dryRunQueue.sync {
            dryRunMark.withValue { mark in
                // A snapshot that is published is never taken back.
                let core = Core(dryRunOn: latest, of: domain, middleware: middleware, limits: limits, mark: mark)
                // Actions of a middleware belong to a later turn, as in any turn.
                let turnMark = TurnMark(of: queue)
                turnMark.with {
                    outcomes =
                        core.turn(
                            dryRuns, at: now(), monotonic: monotonicNow, clock: processorTime, inside: turnMark
                        ).outcomes
                }
            }
        }
        return outcomes
    }
}
