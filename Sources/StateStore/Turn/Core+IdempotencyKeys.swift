/// What a turn answers by idempotency keys alone.
extension Core {
    /// The outcome that a transaction has by its idempotency key alone: a replay or a refusal; nil where it has none.
    ///
    /// - Parameter keys: the keys of the turn so far.
    func outcome(
        byKeyOf transaction: Transaction, at historyTime: Timestamp, besides keys: [String: KeyRecord] = [:]
    ) -> Outcome? {
        guard let idempotency = transaction.idempotency else { return nil }
        if let record = keys[idempotency.key] ?? ledger.record(idempotency.key, at: historyTime) {
            guard record.fingerprint == idempotency.fingerprint else { return .keyReused(key: record.key) }
            return .committed(
                Receipt(
                    version: record.version, id: record.id, cursor: Cursor(epoch, record.version).description,
                    isChange: record.isChange, isReplay: true))
        }
        guard ledger.count + keys.count < limits.idempotencyKeysMax else { return .full(.idempotencyKeys) }
        if let client = transaction.client {
            // One client fills at most half of the ledger, so that there is room for another.
            let count = ledger.count(of: client) + keys.values.count { $0.client == client }
            guard count < max(1, limits.idempotencyKeysMax / 2) else { return .full(.idempotencyKeysOfClient) }
        }
        return nil
    }
}
