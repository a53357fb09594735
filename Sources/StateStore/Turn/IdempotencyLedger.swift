internal import DequeModule

/// The idempotency keys that the store remembers, each until its time is over.
struct IdempotencyLedger: Sendable {
    private var records: [String: KeyRecord] = [:]
    /// By time of insertion, which is the order of expiry.
    private var order: Deque<(key: String, expiry: Timestamp)> = []

    init(_ remembered: [KeyRecord]) {
        for record in remembered.sorted(by: { $0.expiry < $1.expiry }) { insert(record) }
    }

    var count: Int { records.count }

    /// The record of a key whose time is not over.
    func record(_ key: String, at time: Timestamp) -> KeyRecord? {
        guard let record = records[key], record.expiry > time else { return nil }
        return record
    }

    mutating func insert(_ record: KeyRecord) {
        records[record.key] = record
        order.append((record.key, record.expiry))
    }

    /// Drops what has expired.
    ///
    /// A key that was used again since is kept.
    mutating func forget(before time: Timestamp) {
        while let oldest = order.first, oldest.expiry <= time {
            order.removeFirst()
            if let record = records[oldest.key], record.expiry <= time { records[oldest.key] = nil }
        }
    }
}
