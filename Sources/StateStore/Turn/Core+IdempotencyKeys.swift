internal import StateJSON

extension Core {
    func outcome(byKeyOf pending: PendingTransaction, at historyTime: Timestamp) -> Outcome? {
        guard let idempotency = pending.transaction.idempotency else { return nil }
        if let record = ledger.record(idempotency.key, at: historyTime) {
            guard record.fingerprint == idempotency.fingerprint else { return .keyReused(key: record.key.key.text) }
            let cursor = Cursor(epoch, record.version)
            return .committed(
                Receipt(
                    cursor, ownID: record.id == cursor.description ? nil : record.id, isChange: record.isChange,
                    isReplay: true))
        }
        guard ledger.count < limits.idempotencyKeysMax else { return .full(.idempotencyKeys) }
        if let client = pending.client {
            // One client fills at most half of the ledger, so that there is room for another.
            guard ledger.count(of: client) < max(1, limits.idempotencyKeysMax / 2) else {
                return .full(.idempotencyKeysOfClient)
            }
        }
        return nil
    }
}
