import CoreMetrics
import Synchronization
import Testing

@testable import MicroHTTP
@testable import StateServer
@testable import StateStore

@Suite("The metrics exporter")
struct MetricsExporterTests {
    private func text(_ exporter: MetricsExporter) -> String { String(decoding: exporter.text(), as: UTF8.self) }

    @Test("the text has help, type and value, by name and then by labels")
    func format() {
        let exporter = MetricsExporter()

        exporter.counter("b_total", "Bees.", [("of", "z")]).increment(by: 2)
        exporter.counter("b_total", "Bees.", [("of", "a"), ("in", "b")]).increment(by: 3)
        exporter.counter("b_total", "Bees.", [("of", "z")]).increment(by: 5)
        exporter.gauge("a_bytes", "Ants.").set(-7)

        #expect(
            text(exporter) == """
                # HELP storekeeper_a_bytes Ants.
                # TYPE storekeeper_a_bytes gauge
                storekeeper_a_bytes -7
                # HELP storekeeper_b_total Bees.
                # TYPE storekeeper_b_total counter
                storekeeper_b_total{of="a",in="b"} 3
                storekeeper_b_total{of="z"} 7

                """)
    }

    @Test("a label keeps any text")
    func labels() {
        let exporter = MetricsExporter()

        exporter.gauge("a", "A.", [("x", "\\ \" \r\n é")]).set(1)

        #expect(
            text(exporter).utf8.elementsEqual(
                "# HELP storekeeper_a A.\n# TYPE storekeeper_a gauge\nstorekeeper_a{x=\"\\\\ \\\" \r\\n é\"} 1\n".utf8))
    }

    @Test("a histogram counts a value in each bucket whose bound it does not exceed")
    func histogram() {
        let exporter = MetricsExporter()

        let timer = exporter.timer("a_seconds", "A.", [0.001, 0.5, 2])
        for nanoseconds in [1_000_000, 1_000_001, 500_000_000, 3_000_000_000] as [Int64] {
            timer.record(nanoseconds)
        }

        #expect(
            text(exporter) == """
                # HELP storekeeper_a_seconds A.
                # TYPE storekeeper_a_seconds histogram
                storekeeper_a_seconds_bucket{le="0.001"} 1
                storekeeper_a_seconds_bucket{le="0.5"} 3
                storekeeper_a_seconds_bucket{le="2"} 3
                storekeeper_a_seconds_bucket{le="+Inf"} 4
                storekeeper_a_seconds_sum 3.502000001
                storekeeper_a_seconds_count 4

                """)
    }

    @Test("no count of many threads is lost")
    func threads() async {
        let exporter = MetricsExporter()

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 {
                        exporter.counter("a_total", "A.").increment(by: 1)
                        exporter.histogram("b", "B.", [1]).record(2)
                    }
                }
            }
        }

        let lines = text(exporter).split(separator: "\n")
        for line in ["a_total 80000", "b_bucket{le=\"1\"} 0", "b_bucket{le=\"+Inf\"} 80000", "b_sum 160000"] {
            #expect(lines.contains("storekeeper_\(line)"))
        }
    }
}

/// A metrics system that keeps the sum of what each metric was given, by name and labels.
private final class ProgramMetrics: MetricsFactory {
    private final class Handler: CounterHandler, MeterHandler, RecorderHandler, TimerHandler {
        let add: @Sendable (Double) -> Void

        init(_ add: @escaping @Sendable (Double) -> Void) { self.add = add }

        func increment(by amount: Int64) { add(Double(amount)) }
        func reset() {}
        func set(_ value: Int64) { add(Double(value)) }
        func set(_ value: Double) { add(value) }
        func increment(by amount: Double) { add(amount) }
        func decrement(by amount: Double) { add(-amount) }
        func record(_ value: Int64) { add(Double(value)) }
        func record(_ value: Double) { add(value) }
        func recordNanoseconds(_ duration: Int64) { add(Double(duration)) }
    }

    private let sums = Mutex<[String: Double]>([:])

    subscript(name: String) -> Double? { sums.withLock { $0[name] } }

    private func handler(_ label: String, _ dimensions: [(String, String)]) -> Handler {
        let name = dimensions.reduce(label) { "\($0) \($1.1)" }
        return Handler { [self] amount in sums.withLock { $0[name, default: 0] += amount } }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { handler(label, dimensions) }
    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { handler(label, dimensions) }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        handler(label, dimensions)
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { handler(label, dimensions) }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}

@Suite("The metrics of a server")
struct ServerMetricsTests {
    private func lines(_ metrics: ServerMetrics) -> Set<String> {
        Set(String(decoding: metrics.text, as: UTF8.self).split(separator: "\n").map(String.init))
    }

    @Test("an action of a type that the domain has not counts as other")
    func types() {
        let metrics = ServerMetrics(types: ["a/b"])

        metrics.observer().decided("a/b", .committed, 2)
        for number in 0..<1000 { metrics.observer().decided("made/\(number)", .rejected, 1) }

        let lines = lines(metrics).filter { $0.hasPrefix("storekeeper_actions_total") }
        #expect(
            lines == [
                #"storekeeper_actions_total{type="a/b",outcome="committed"} 2"#,
                #"storekeeper_actions_total{type="other",outcome="rejected"} 1000"#,
            ])
    }

    @Test("of the codes of problems, so many have a counter of their own, and the rest counts as other")
    func codes() {
        let metrics = ServerMetrics()

        // Four codes have a counter from the start.
        for number in 4..<ServerMetrics.codesMax { metrics.count(["code-\(number)": 1]) }
        for number in 0..<1000 { metrics.count(["made-\(number)": 2]) }
        metrics.count(["code-7": 3])
        metrics.count([:])

        let lines = lines(metrics).filter { $0.hasPrefix("storekeeper_refusals_total") }
        #expect(lines.count == ServerMetrics.codesMax + 1)
        #expect(lines.contains(#"storekeeper_refusals_total{code="other"} 2000"#))
        #expect(lines.contains(#"storekeeper_refusals_total{code="code-7"} 4"#))
    }

    @Test("the version of the program is not that of Storekeeper", arguments: ["7.1", nil])
    func versions(version: String?) {
        let labels = (version.map { "version=\"\($0)\"," } ?? "") + "storekeeper=\"\(StateServer.version)\""

        #expect(lines(ServerMetrics(version: version)).contains("storekeeper_build_info{\(labels)} 1"))
    }

    @Test("a program's own metrics system gets every metric, too")
    func shared() {
        let program = ProgramMetrics()
        let metrics = ServerMetrics(types: ["a"], sharedWith: program)
        var answers = Answers()
        answers.times[0] = .init(count: 3, nanoseconds: 3000)

        metrics.observer().decided("a", .committed, 2)
        metrics.observer().computed(3, .milliseconds(2))
        metrics.observer().appended(.unknown, 1, .seconds(1))
        metrics.count(["draining": 1])
        metrics.waitBegan(.changes)
        metrics.streamBegan(.view)
        metrics.count(Statistics(), answers)

        #expect(metrics.isShared && !ServerMetrics().isShared)
        for (name, sum) in [
            ("actions_total a committed", 2), ("turn_seconds", 2_000_000), ("turn_transactions", 3),
            ("journal_failures_total", 1), ("refusals_total draining", 1), ("waits_total changes", 1),
            ("streams_total view", 1), ("answer_seconds", 3000), ("build_info \(StateServer.version)", 1),
        ] as [(String, Double)] {
            #expect(program["storekeeper_\(name)"] == sum, "\(name)")
        }
        #expect(lines(metrics).contains("storekeeper_turn_seconds_sum 0.002"))
    }

    @Test("a total of the transport rises by what is new, however often it is read")
    func sampled() {
        let metrics = ServerMetrics()
        var statistics = Statistics()
        statistics.requests = 5
        metrics.count(statistics, Answers())
        statistics.requests = 7

        for _ in 0..<2 { metrics.count(statistics, Answers()) }

        #expect(lines(metrics).contains("storekeeper_requests_total 7"))
    }
}
