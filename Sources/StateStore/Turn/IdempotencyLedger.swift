internal import HeapModule
package import StateJSON

struct IdempotencyLedger: Sendable {
    private var records: [IdempotencyKey: KeyRecord] = [:]
    /// The keys by the time at which they expire; also some that are there no more.
    private var order = Heap<Expiry>()
    private var countByClient: [ExactText: Int] = [:]

    private struct Expiry: Comparable {
        let time: Timestamp
        let key: IdempotencyKey

        static func < (left: Expiry, right: Expiry) -> Bool { left.time < right.time }
    }

    init(_ remembered: [KeyRecord], expiryMax: Timestamp? = nil) {
        for record in remembered { insert(expiryMax.map(record.expiring(by:)) ?? record) }
    }

    var count: Int { records.count }
    var orderCount: Int { order.count }

    func count(of client: String) -> Int { countByClient[ExactText(client)] ?? 0 }

    func record(_ key: IdempotencyKey, at time: Timestamp) -> KeyRecord? {
        guard let record = records[key], record.expiry > time else { return nil }
        return record
    }

    /// Inserts a record; O(log n), also where its clock is behind that of the others.
    mutating func insert(_ record: KeyRecord) {
        if let former = records.updateValue(record, forKey: record.key) { discount(former) }
        if let client = record.client { countByClient[ExactText(client), default: 0] += 1 }
        order.insert(Expiry(time: record.expiry, key: record.key))
        if order.count > 2 * records.count + 64 {
            order = Heap(records.values.lazy.map { Expiry(time: $0.expiry, key: $0.key) })
        }
    }

    mutating func drop(_ key: IdempotencyKey) {
        if let record = records.removeValue(forKey: key) { discount(record) }
    }

    private mutating func discount(_ record: KeyRecord) {
        guard let client = record.client else { return }
        let left = count(of: client) - 1
        countByClient[ExactText(client)] = left > 0 ? left : nil
    }

    /// The ledger keeps a key that has expired and was then used again.
    mutating func forget(before time: Timestamp) {
        while let oldest = order.min, oldest.time <= time {
            order.removeMin()
            if let record = records[oldest.key], record.expiry <= time { drop(oldest.key) }
        }
    }
}

package struct IdempotencyKey: Hashable, Sendable {
    package let key: ExactText
    package let subject: ExactText?
    /// The line of a bulk load, from 0, each of which is a commit of its own; nil for another body.
    package let line: Int?

    package init(_ key: String, of subject: String? = nil, line: Int? = nil) {
        self.key = ExactText(key)
        self.subject = ExactText(optional: subject)
        self.line = line
    }

    /// Reads a journal's text of a key: the subject before a NUL, and the line behind a line feed.
    ///
    /// Neither a subject nor a key has a control character; any other text is a key as it is.
    package init(recorded text: String) {
        let bytes = text.utf8
        let nul = bytes.firstIndex(of: 0)
        var rest = nul.map { text[text.utf8.index(after: $0)...] } ?? text[...]
        var line: Int?
        if let feed = rest.utf8.lastIndex(of: UInt8(ascii: "\n")) {
            let digits = rest.utf8[rest.utf8.index(after: feed)...]
            // Only the digits that `recorded` writes.
            if let number = Int(String(Substring(digits))), number >= 0, "\(number)".utf8.elementsEqual(digits) {
                line = number
                rest = rest[..<feed]
            }
        }
        self.init(String(rest), of: nul.map { String(text[..<$0]) }, line: line)
    }

    package var recorded: String {
        guard subject != nil || line != nil else { return key.text }
        return (subject.map { "\($0.text)\0" } ?? "") + key.text + (line.map { "\n\($0)" } ?? "")
    }
}

extension IdempotencyKey: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) { self.init(text, of: nil) }
}

/// The time of a history, by which idempotency keys expire: it advances by what the wall clock and a monotonic clock
/// have both advanced while a process runs.
///
/// So a jump of the wall clock makes no key expire early, and the time between two processes does not count.
struct HistoryClock: Sendable {
    private(set) var time: Timestamp?
    private var wall: Timestamp?
    private var monotonic = Instant(nanoseconds: 0)

    /// Within so many milliseconds the wall clock is trusted, so that few turns ask for the monotonic time.
    private static var resolution: Int64 { 1000 }

    /// Makes a clock that goes on from a time; nil for that of the wall clock, where a history begins.
    init(_ time: Timestamp?) { self.time = time }

    mutating func read(wall now: Timestamp, monotonic clock: () -> Instant) -> Timestamp {
        guard let time, let wall else {
            let begun = time ?? now
            (self.time, wall, monotonic) = (begun, now, clock())
            return begun
        }
        // The difference of any two times fits where neither is near the ends of their type; a clock may be anywhere.
        let (elapsed, isBeyond) = now.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        if !isBeyond, elapsed.magnitude < Self.resolution {
            return time.advanced(byMilliseconds: max(0, elapsed))
        }
        let instant = clock()
        let passed = (instant.nanoseconds - monotonic.nanoseconds) / 1_000_000
        let counted = time.advanced(byMilliseconds: max(0, min(isBeyond ? 0 : elapsed, passed)))
        (self.time, self.wall, monotonic) = (counted, now, instant)
        return counted
    }
}
