internal import DequeModule
internal import StateJSON

struct IdempotencyLedger: Sendable {
    private var records: [IdempotencyKey: KeyRecord] = [:]
    private var order: Deque<(key: IdempotencyKey, expiry: Timestamp)> = []
    private var countByClient: [ExactText: Int] = [:]

    /// Makes a ledger of the keys that a journal has.
    init(_ remembered: [KeyRecord], expiryMax: Timestamp? = nil) {
        let bounded = remembered.map { expiryMax.map($0.expiring(by:)) ?? $0 }
        for record in bounded.sorted(by: { $0.expiry < $1.expiry }) { insert(record) }
    }

    var count: Int { records.count }

    func count(of client: String) -> Int { countByClient[ExactText(client)] ?? 0 }

    /// The record of a key that has not expired.
    func record(_ key: IdempotencyKey, at time: Timestamp) -> KeyRecord? {
        guard let record = records[key], record.expiry > time else { return nil }
        return record
    }

    mutating func insert(_ record: KeyRecord) {
        drop(record.key)
        records[record.key] = record
        if let client = record.client { countByClient[ExactText(client), default: 0] += 1 }
        // A key of this process expires last of all, because the time of the history does not go back by a second.
        let place = order.lastIndex { $0.expiry <= record.expiry }.map { $0 + 1 } ?? 0
        order.insert((record.key, record.expiry), at: place)
    }

    private mutating func drop(_ key: IdempotencyKey) {
        guard let record = records.removeValue(forKey: key), let client = record.client else { return }
        let left = count(of: client) - 1
        countByClient[ExactText(client)] = left > 0 ? left : nil
    }

    mutating func remove(_ newest: [KeyRecord]) {
        for record in newest { drop(record.key) }
        while let last = order.last, records[last.key] == nil { order.removeLast() }
    }

    /// Drops the expired records.
    ///
    /// The ledger keeps a key that has expired and was then used again.
    mutating func forget(before time: Timestamp) {
        while let oldest = order.first, oldest.expiry <= time {
            order.removeFirst()
            if let record = records[oldest.key], record.expiry <= time { drop(oldest.key) }
        }
    }
}
