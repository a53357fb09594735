internal import CoreMetrics
internal import MicroHTTP
internal import Synchronization

protocol ExportedMetric: AnyObject, Sendable {
    func write(_ name: String, _ labels: String, to text: inout String)
}

/// A number that is counted or set.
final class Figure: ExportedMetric {
    private let value = Atomic<Int64>(0)
    private let counter: (any CounterHandler)?
    private let meter: (any MeterHandler)?

    init(counter: (any CounterHandler)? = nil, meter: (any MeterHandler)? = nil) {
        (self.counter, self.meter) = (counter, meter)
    }

    func increment(by amount: Int64) {
        value.wrappingAdd(amount, ordering: .relaxed)
        counter?.increment(by: amount)
    }

    func set(_ number: Int) {
        value.store(Int64(number), ordering: .relaxed)
        meter?.set(Int64(number))
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += "\(name)\(labels) \(value.load(ordering: .relaxed))\n"
    }
}

/// How often values up to each of some bounds were recorded, at the cost of two atomic additions.
final class Distribution: ExportedMetric {
    private final class Bucket: Sendable { let count = Atomic<Int64>(0) }

    private let bounds: [Int64]
    private let buckets: [Bucket]
    private let sum = Atomic<Int64>(0)
    /// How many of what is recorded are one of what is written: nanoseconds are written as seconds.
    private let unit: Double
    private let timer: (any TimerHandler)?
    private let recorder: (any RecorderHandler)?

    init(
        _ bounds: [Double], unit: Double, timer: (any TimerHandler)? = nil, recorder: (any RecorderHandler)? = nil
    ) {
        self.bounds = bounds.map { Int64(($0 * unit).rounded()) }
        (self.unit, self.timer, self.recorder) = (unit, timer, recorder)
        buckets = (0...bounds.count).map { _ in Bucket() }
    }

    func record(_ value: Int64) {
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        buckets[index].count.wrappingAdd(1, ordering: .relaxed)
        sum.wrappingAdd(value, ordering: .relaxed)
        timer?.recordNanoseconds(value)
        recorder?.record(value)
    }

    var recorded: (count: Int, sum: Int64) {
        (buckets.reduce(0) { $0 + Int($1.count.load(ordering: .relaxed)) }, sum.load(ordering: .relaxed))
    }

    /// Adds counts of times by bucket; a program's own timer, which takes one after the other, gets the mean of a bucket.
    func add(_ counts: [Answers.Times]) {
        for (bucket, times) in zip(buckets, counts) {
            // A time can be read with its count or the next one.
            bucket.count.wrappingAdd(Int64(times.count), ordering: .relaxed)
            sum.wrappingAdd(Int64(times.nanoseconds), ordering: .relaxed)
            guard times.count > 0, let timer else { continue }
            for _ in 0..<times.count { timer.recordNanoseconds(Int64(times.nanoseconds / times.count)) }
        }
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        // The count is that of the buckets as they were read, so that the last bucket equals it.
        var count: Int64 = 0
        let start = labels.isEmpty ? "{" : labels.dropLast() + ","
        for (index, bucket) in buckets.enumerated() {
            count += bucket.count.load(ordering: .relaxed)
            let bound = index < bounds.count ? self.text(of: bounds[index]) : "+Inf"
            text += "\(name)_bucket\(start)le=\"\(bound)\"} \(count)\n"
        }
        text += "\(name)_sum\(labels) \(self.text(of: sum.load(ordering: .relaxed)))\n"
        text += "\(name)_count\(labels) \(count)\n"
    }

    private func text(of value: Int64) -> String {
        let number = Double(value) / unit
        return Int64(exactly: number).map(String.init) ?? "\(number)"
    }
}

/// Makes metrics, one for a name and labels, and writes them for Prometheus and for the program's own metrics system.
///
/// Any thread may call it, and to record takes no lock.
final class MetricsExporter: Sendable {
    private struct Family {
        let kind: String
        let help: String
        var series: [String: any ExportedMetric] = [:]
    }

    private let families = Mutex<[String: Family]>([:])
    private let program: (any MetricsFactory)?

    init(sharedWith program: any MetricsFactory = NOOPMetricsHandler.instance) {
        self.program = program is NOOPMetricsHandler ? nil : program
    }

    var isShared: Bool { program != nil }

    func text() -> [UInt8] {
        var text = ""
        for (name, family) in families.withLock(\.self).sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.kind)\n"
            for (labels, metric) in family.series.sorted(by: { $0.key < $1.key }) {
                metric.write(name, labels, to: &text)
            }
        }
        return Array(text.utf8)
    }

    /// - Parameter help: one line without a backslash.
    func counter(_ name: String, _ help: String, _ labels: [(String, String)] = []) -> Figure {
        metric(name, "counter", help, labels) { Figure(counter: program?.makeCounter(label: $0, dimensions: labels)) }
    }

    func gauge(_ name: String, _ help: String, _ labels: [(String, String)] = []) -> Figure {
        metric(name, "gauge", help, labels) { Figure(meter: program?.makeMeter(label: $0, dimensions: labels)) }
    }

    func timer(_ name: String, _ help: String, _ bounds: [Double]) -> Distribution {
        metric(name, "histogram", help) {
            Distribution(bounds, unit: 1e9, timer: program?.makeTimer(label: $0, dimensions: []))
        }
    }

    func histogram(_ name: String, _ help: String, _ bounds: [Double]) -> Distribution {
        metric(name, "histogram", help) {
            Distribution(
                bounds, unit: 1, recorder: program?.makeRecorder(label: $0, dimensions: [], aggregate: true))
        }
    }

    private func metric<Metric: ExportedMetric>(
        _ name: String, _ kind: String, _ help: String, _ labels: [(String, String)] = [], _ make: (String) -> Metric
    ) -> Metric {
        let (name, text) = ("storekeeper_\(name)", Self.text(of: labels))
        if let known = families.withLock({ $0[name]?.series[text] }) as? Metric { return known }
        // The program's own metrics system makes a new one outside the lock.
        let made = make(name)
        return families.withLock { families in
            if let known = families[name]?.series[text] as? Metric { return known }
            families[name, default: Family(kind: kind, help: help)].series[text] = made
            return made
        }
    }

    private static func text(of labels: [(String, String)]) -> String {
        let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"]
        let labels = labels.map { name, value in
            "\(name)=\"\(value.unicodeScalars.map { escapes[$0] ?? String($0) }.joined())\""
        }
        return labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
    }
}
