internal import Benchmarking

/// The scenario `wake-streams`: thousands of clients wait for the next commit, by the contract's own route and by those of
/// the Durable Streams protocol.
enum WakeStreams {
    static let scenario = Scenario(
        "wake-streams",
        "10,000 long-polls for the next commit: of changes, of the stream of commits, of the state stream"
    ) { bench, finding in
        let count = bench.effort.count(10_000)
        let kinds: [(who: String, wait: WaiterLoad.WaitKind)] = [
            ("changes", .follow(probe: "/v1/state", field: "state-cursor", target: "/v1/changes?wait&since=")),
            ("stream of commits", follow("commits")), ("state stream", follow("state")),
        ]
        var loads: [WaiterLoad] = []
        defer { for load in loads { stop(load.server, &finding) } }
        for kind in kinds {
            let server = try ServerKind.startStorekeeper(bench.workplace, data: "none")
            loads.append(try WaiterLoad(server, kind.wait, count))
            finding.series.append(Series(who: kind.who))
        }
        for run in 0..<bench.effort.runs + 1 {
            for (index, load) in loads.enumerated() {
                let reading = try load.round()
                // The first run warms up.
                if run > 0 { finding.series[index].runs.append(reading) }
            }
        }
        for series in finding.series.dropFirst() {
            guard let ratio = series.ratio(of: \.lastMilliseconds, to: finding.series[0]) else { continue }
            finding.judgements.append(Judgement("last answer, of the \(series.who) / of changes", ratio, .atMost, 1.1))
        }
    }

    private static func follow(_ name: String) -> WaiterLoad.WaitKind {
        .follow(
            probe: "/v1/streams/\(name)?offset=now", field: "stream-next-offset",
            target: "/v1/streams/\(name)?live=long-poll&offset=")
    }
}
