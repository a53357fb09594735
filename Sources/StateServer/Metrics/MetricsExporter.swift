internal import CoreMetrics
internal import Synchronization

/// A metrics factory that writes its metrics for Prometheus; any thread may call it, and to record takes no lock.
final class MetricsExporter: MetricsFactory {
    private struct Family {
        let description: MetricDescription
        var series: [String: any ExportedMetric] = [:]
    }

    private let families: Mutex<[String: Family]>

    /// Makes an exporter that knows these metrics; any other has buckets of powers of ten, and its name as its help.
    init(_ descriptions: [MetricDescription]) {
        families = Mutex(
            Dictionary(uniqueKeysWithValues: descriptions.map { ($0.name, Family(description: $0)) }))
    }

    /// The metrics in the text format 0.0.4 of Prometheus, by name and labels; a family without a metric is left out.
    func text() -> [UInt8] {
        let families = families.withLock { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) where !family.series.isEmpty {
            text += "# HELP \(name) \(family.description.help)\n# TYPE \(name) \(family.description.kind.rawValue)\n"
            for (labels, metric) in family.series.sorted(by: { $0.key < $1.key }) {
                metric.write(name, labels, to: &text)
            }
        }
        return Array(text.utf8)
    }

    func distribution(_ name: String) -> Distribution {
        metric(name, [], .histogram) { Distribution($0.buckets) }
    }

    // MARK: The factory

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        metric(label, dimensions, .counter) { _ in Total() }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        metric(label, dimensions, .gauge) { _ in Level() }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate
            ? metric(label, dimensions, .histogram) { Distribution($0.buckets) }
            : metric(label, dimensions, .gauge) { _ in Level() }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        metric(label, dimensions, .histogram) { Distribution($0.buckets) }
    }

    func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    func destroyTimer(_ handler: any TimerHandler) { remove(handler) }

    private func metric<Metric: ExportedMetric>(
        _ name: String, _ dimensions: [(String, String)], _ kind: MetricDescription.Kind,
        _ make: (MetricDescription) -> Metric
    ) -> Metric {
        let labels = Self.text(of: dimensions)
        return families.withLock { families in
            let description =
                families[name]?.description ?? MetricDescription(name, kind, name, buckets: MetricDescription.decades)
            if let known = families[name]?.series[labels] as? Metric { return known }
            let made = make(description)
            // A second metric with the name and another type is counted and not shown: the text can have one of them.
            guard description.kind == kind else { return made }
            families[name, default: Family(description: description)].series[labels] = made
            return made
        }
    }

    private func remove(_ handler: any AnyObject) {
        families.withLock { families in
            for name in Array(families.keys) {
                guard let series = families[name]?.series else { continue }
                families[name]?.series = series.filter { $0.value !== handler }
            }
        }
    }

    private static func text(of dimensions: [(String, String)]) -> String {
        guard !dimensions.isEmpty else { return "" }
        let labels = dimensions.map { name, value in
            var escaped = ""
            for character in value.unicodeScalars {
                switch character {
                case "\\": escaped += "\\\\"
                case "\"": escaped += "\\\""
                case "\n": escaped += "\\n"
                default: escaped.unicodeScalars.append(character)
                }
            }
            return "\(name)=\"\(escaped)\""
        }
        return "{\(labels.joined(separator: ","))}"
    }
}

struct MetricDescription: Sendable {
    enum Kind: String, Sendable { case counter, gauge, histogram }

    let name: String
    let kind: Kind
    /// The help, in one line without a backslash.
    let help: String
    let buckets: [Double]

    init(_ name: String, _ kind: Kind, _ help: String, buckets: [Double] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.buckets = buckets
    }

    static let decades: [Double] = [0.001, 0.01, 0.1, 1, 10, 100, 1000, 10_000, 100_000]
}
