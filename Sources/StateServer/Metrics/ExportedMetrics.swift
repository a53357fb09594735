internal import CoreMetrics
internal import Synchronization

protocol ExportedMetric: AnyObject, Sendable {
    func write(_ name: String, _ labels: String, to text: inout String)
}

final class Total: CounterHandler, ExportedMetric {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += "\(name)\(labels) \(value.load(ordering: .relaxed))\n"
    }
}

final class Level: MeterHandler, RecorderHandler, ExportedMetric {
    private let value = AtomicDouble()

    func set(_ value: Int64) { self.value.set(Double(value)) }
    func set(_ value: Double) { self.value.set(value) }
    func increment(by amount: Double) { value.add(amount) }
    func decrement(by amount: Double) { value.add(-amount) }
    func record(_ value: Int64) { self.value.set(Double(value)) }
    func record(_ value: Double) { self.value.set(value) }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += "\(name)\(labels) \(value.text)\n"
    }
}

/// How often values up to each of some bounds were recorded, at the cost of two atomic additions.
final class Distribution: RecorderHandler, TimerHandler, ExportedMetric {
    private final class Bucket: Sendable { let count = Atomic<Int64>(0) }

    private let bounds: [Double]
    private let buckets: [Bucket]
    private let sum = AtomicDouble()

    init(_ bounds: [Double]) {
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Bucket() }
    }

    func record(_ value: Int64) { record(Double(value)) }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func record(_ value: Double) {
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        buckets[index].count.wrappingAdd(1, ordering: .relaxed)
        sum.add(value)
    }

    func add(_ counts: [Int], sum: Double) {
        for (bucket, count) in zip(buckets, counts) { bucket.count.wrappingAdd(Int64(count), ordering: .relaxed) }
        self.sum.add(sum)
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        // The count is that of the buckets as they were read, so that the last bucket equals it.
        var count: Int64 = 0
        let start = labels.isEmpty ? "{" : labels.dropLast() + ","
        for (index, bucket) in buckets.enumerated() {
            count += bucket.count.load(ordering: .relaxed)
            let bound = index < bounds.count ? AtomicDouble.text(of: bounds[index]) : "+Inf"
            text += "\(name)_bucket\(start)le=\"\(bound)\"} \(count)\n"
        }
        text += "\(name)_sum\(labels) \(sum.text)\n\(name)_count\(labels) \(count)\n"
    }
}

private final class AtomicDouble: Sendable {
    private let bits = Atomic<UInt64>(0)

    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    func add(_ amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, original) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }

    var text: String { Self.text(of: Double(bitPattern: bits.load(ordering: .relaxed))) }

    static func text(of value: Double) -> String { Int64(exactly: value).map(String.init) ?? "\(value)" }
}
