internal import DequeModule

/// The idempotency keys that the store keeps, each until it expires.
struct IdempotencyLedger: Sendable {
    private var records: [String: KeyRecord] = [:]
    /// The keys in the order of their insertion, which is the order of their expiry.
    private var order: Deque<(key: String, expiry: Timestamp)> = []

    init(_ remembered: [KeyRecord]) {
        for record in remembered.sorted(by: { $0.expiry < $1.expiry }) { insert(record) }
    }

    var count: Int { records.count }

    /// The record of a key; nil where there is none or it has expired.
    func record(_ key: String, at time: Timestamp) -> KeyRecord? {
        guard let record = records[key], record.expiry > time else { return nil }
        return record
    }

    mutating func insert(_ record: KeyRecord) {
        records[record.key] = record
        order.append((record.key, record.expiry))
    }

    /// Removes the newest records: those of commits that have not landed.
    mutating func remove(_ newest: [KeyRecord]) {
        for record in newest { records[record.key] = nil }
        while let last = order.last, records[last.key] == nil { order.removeLast() }
    }

    /// Drops the expired records.
    ///
    /// The ledger keeps a key that has expired and was then used again.
    mutating func forget(before time: Timestamp) {
        while let oldest = order.first, oldest.expiry <= time {
            order.removeFirst()
            if let record = records[oldest.key], record.expiry <= time { records[oldest.key] = nil }
        }
    }
}
