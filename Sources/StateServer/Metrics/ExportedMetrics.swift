internal import CoreMetrics
internal import MicroHTTP
internal import Synchronization

protocol ExportedMetric: AnyObject, Sendable {
    func write(_ name: String, _ labels: String, to text: inout String)
}

final class Total: ExportedMetric {
    private let value = Atomic<Int64>(0)
    private let shared: (any CounterHandler)?

    init(_ shared: (any CounterHandler)?) { self.shared = shared }

    func increment(by amount: Int64) {
        value.wrappingAdd(amount, ordering: .relaxed)
        shared?.increment(by: amount)
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += "\(name)\(labels) \(value.load(ordering: .relaxed))\n"
    }
}

final class Level: ExportedMetric {
    private let value = Atomic<Int64>(0)
    private let shared: (any MeterHandler)?

    init(_ shared: (any MeterHandler)?) { self.shared = shared }

    func set(_ number: Int) {
        value.store(Int64(number), ordering: .relaxed)
        shared?.set(Int64(number))
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += "\(name)\(labels) \(value.load(ordering: .relaxed))\n"
    }
}

/// How often values up to each of some bounds were recorded, at the cost of two atomic additions.
final class Distribution: ExportedMetric {
    private final class Bucket: Sendable { let count = Atomic<Int64>(0) }

    private let bounds: [Double]
    private let perUnit: Double
    private let buckets: [Bucket]
    /// The bits of a number.
    private let sum = Atomic<UInt64>(0)
    private let timer: (any TimerHandler)?
    private let recorder: (any RecorderHandler)?

    init(
        _ bounds: [Double], perUnit: Double = 1, timer: (any TimerHandler)? = nil,
        recorder: (any RecorderHandler)? = nil
    ) {
        (self.bounds, self.perUnit, self.timer, self.recorder) = (bounds, perUnit, timer, recorder)
        buckets = (0...bounds.count).map { _ in Bucket() }
    }

    /// A timer takes nanoseconds.
    func record(_ value: Int64) {
        let amount = Double(value) / perUnit
        buckets[bounds.firstIndex { amount <= $0 } ?? bounds.count].count.wrappingAdd(1, ordering: .relaxed)
        add(amount)
        timer?.recordNanoseconds(value)
        recorder?.record(value)
    }

    /// Adds counts of times by bucket; a program's own timer, which takes one after the other, gets the mean of a bucket.
    func add(_ counts: [Answers.Times]) {
        for (bucket, times) in zip(buckets, counts) where times.count > 0 {
            bucket.count.wrappingAdd(Int64(times.count), ordering: .relaxed)
            guard let timer else { continue }
            for _ in 0..<times.count { timer.recordNanoseconds(Int64(times.nanoseconds / times.count)) }
        }
        add(Double(counts.reduce(0) { $0 + $1.nanoseconds }) / perUnit)
    }

    private func add(_ amount: Double) {
        var old = sum.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, original) = sum.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        // The count is that of the buckets as they were read, so that the last bucket equals it.
        var count: Int64 = 0
        let start = labels.isEmpty ? "{" : labels.dropLast() + ","
        for (index, bucket) in buckets.enumerated() {
            count += bucket.count.load(ordering: .relaxed)
            let bound = index < bounds.count ? Self.text(of: bounds[index]) : "+Inf"
            text += "\(name)_bucket\(start)le=\"\(bound)\"} \(count)\n"
        }
        let sum = Self.text(of: Double(bitPattern: sum.load(ordering: .relaxed)))
        text += "\(name)_sum\(labels) \(sum)\n\(name)_count\(labels) \(count)\n"
    }

    private static func text(of value: Double) -> String { Int64(exactly: value).map(String.init) ?? "\(value)" }
}
