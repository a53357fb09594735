import CoreMetrics
import Testing

@testable import MicroHTTP
@testable import StateServer
@testable import StateStore

@Suite("The metrics exporter")
struct MetricsExporterTests {
    private func text(_ exporter: MetricsExporter) -> String { String(decoding: exporter.text(), as: UTF8.self) }

    @Test("the text has help, type and value, by name and then by labels; a metric that was not made is not there")
    func format() {
        let exporter = MetricsExporter([
            .init("b_total", .counter, "Bees."), .init("a_bytes", .gauge, "Ants."), .init("c", .gauge, "Not made."),
        ])

        exporter.makeCounter(label: "b_total", dimensions: [("of", "z")]).increment(by: 2)
        exporter.makeCounter(label: "b_total", dimensions: [("of", "a"), ("in", "b")]).increment(by: 3)
        exporter.makeCounter(label: "b_total", dimensions: [("of", "z")]).increment(by: 5)
        exporter.makeMeter(label: "a_bytes", dimensions: []).set(1.5)

        #expect(
            text(exporter) == """
                # HELP a_bytes Ants.
                # TYPE a_bytes gauge
                a_bytes 1.5
                # HELP b_total Bees.
                # TYPE b_total counter
                b_total{of="a",in="b"} 3
                b_total{of="z"} 7

                """)
    }

    @Test("a label keeps any text")
    func labels() {
        let exporter = MetricsExporter([.init("a", .gauge, "A.")])

        exporter.makeMeter(label: "a", dimensions: [("x", "\\ \" \n é")]).set(Int64(-7))

        #expect(text(exporter).hasSuffix(#"a{x="\\ \" \n é"} -7"# + "\n"))
    }

    @Test("a histogram counts a value in each bucket whose bound it does not exceed")
    func histogram() {
        let exporter = MetricsExporter([.init("a_seconds", .histogram, "A.", buckets: [0.001, 0.5, 2])])

        let timer = exporter.makeTimer(label: "a_seconds", dimensions: [("of", "x")])
        for nanoseconds in [1_000_000, 1_000_001, 500_000_000, 3_000_000_000] as [Int64] {
            timer.recordNanoseconds(nanoseconds)
        }

        #expect(
            text(exporter) == """
                # HELP a_seconds A.
                # TYPE a_seconds histogram
                a_seconds_bucket{of="x",le="0.001"} 1
                a_seconds_bucket{of="x",le="0.5"} 3
                a_seconds_bucket{of="x",le="2"} 3
                a_seconds_bucket{of="x",le="+Inf"} 4
                a_seconds_sum{of="x"} 3.502000001
                a_seconds_count{of="x"} 4

                """)
    }

    @Test("no count of many threads is lost")
    func threads() async {
        let exporter = MetricsExporter([
            .init("a_total", .counter, "A."), .init("b", .histogram, "B.", buckets: [1]), .init("c", .gauge, "C."),
        ])

        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10_000 {
                        exporter.makeCounter(label: "a_total", dimensions: []).increment(by: 1)
                        exporter.makeRecorder(label: "b", dimensions: [], aggregate: true).record(Int64(2))
                        exporter.makeMeter(label: "c", dimensions: []).increment(by: 0.5)
                    }
                }
            }
        }

        let lines = text(exporter).split(separator: "\n")
        for line in [
            "a_total 80000", "b_bucket{le=\"1\"} 0", "b_bucket{le=\"+Inf\"} 80000", "b_sum 160000", "c 40000",
        ] {
            #expect(lines.contains(Substring(line)))
        }
    }

    @Test("a metric that is destroyed is gone, and one of another type under a known name is not shown")
    func destroyed() {
        let exporter = MetricsExporter([.init("a_total", .counter, "A.")])
        let counter = exporter.makeCounter(label: "a_total", dimensions: [])
        exporter.makeMeter(label: "a_total", dimensions: []).set(Int64(9))
        #expect(text(exporter).hasSuffix("a_total 0\n"))

        exporter.destroyCounter(counter)

        #expect(text(exporter).isEmpty)
    }
}

@Suite("The metrics of a server")
struct ServerMetricsTests {
    private static let figures = ServerMetrics.Figures(
        hub: HubFigures(
            waits: CountByRoute(), streams: CountByRoute(), latest: 1, oldest: 0, historyCommitsCount: 1,
            historyBytes: 2), transport: Statistics(), mailboxActions: 3, turnsInFlight: 1, idempotencyKeys: 4,
        memoryBytes: 5, memoryClients: 2, memoryLargestShare: 4, isDurable: true,
        isDraining: false)

    private func lines(_ metrics: ServerMetrics, _ figures: ServerMetrics.Figures = figures) -> Set<String> {
        Set(String(decoding: metrics.text(after: figures), as: UTF8.self).split(separator: "\n").map(String.init))
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
        let program = MetricsExporter(MetricDescription.all)
        let metrics = ServerMetrics(types: ["a"], sharedWith: program)

        metrics.observer().decided("a", .committed, 2)
        metrics.observer().computed(3, .milliseconds(2))
        metrics.observer().appended(.unknown, 1, .seconds(1))
        metrics.count(["draining": 1])
        metrics.waitBegan(.changes)
        metrics.streamBegan(.view)
        metrics.sample(Self.figures)

        #expect(metrics.isShared && !ServerMetrics().isShared)
        let text = String(decoding: program.text(), as: UTF8.self)
        #expect(text == String(decoding: metrics.text(after: Self.figures), as: UTF8.self))
        #expect(text.contains("storekeeper_turn_seconds_sum 0.002\n"))
        #expect(text.contains("storekeeper_journal_failures_total 1\n"))
        #expect(text.contains("storekeeper_waits_total{route=\"changes\"} 1\n"))
        #expect(text.contains("storekeeper_streams_total{route=\"view\"} 1\n"))
    }

    @Test("a total of the transport rises by what is new, however often it is read")
    func sampled() {
        let metrics = ServerMetrics()
        var figures = Self.figures
        figures.transport.requests = 5
        _ = lines(metrics, figures)
        figures.transport.requests = 7

        for _ in 0..<2 { #expect(lines(metrics, figures).contains("storekeeper_requests_total 7")) }
    }

    @Test("every described metric that needs no journal and no request is there, and no other")
    func complete() {
        let metrics = ServerMetrics(types: ["a"])
        metrics.observer().decided("a", .committed, 1)
        metrics.count(["draining": 1])

        let names = Set(
            lines(metrics).filter { $0.hasPrefix("# TYPE ") }.map { String($0.split(separator: " ")[2]) })

        #expect(
            names
                == Set(MetricDescription.all.map(\.name)).subtracting([
                    "storekeeper_backup_time_seconds", "storekeeper_journal_bytes", "storekeeper_journal_free_bytes",
                ]))
    }

    @Test("a server that does not record, or stops, is not ready")
    func readiness() {
        let metrics = ServerMetrics()
        var (failing, draining) = (Self.figures, Self.figures)
        failing.isDurable = false
        draining.isDraining = true

        #expect(lines(metrics).isSuperset(of: ["storekeeper_ready 1", "storekeeper_journal_up 1"]))
        #expect(lines(metrics, failing).isSuperset(of: ["storekeeper_ready 0", "storekeeper_journal_up 0"]))
        #expect(lines(metrics, draining).isSuperset(of: ["storekeeper_ready 0", "storekeeper_journal_up 1"]))
    }
}
