internal import CoreMetrics
internal import Synchronization

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
