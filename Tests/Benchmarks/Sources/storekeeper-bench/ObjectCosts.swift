internal import Benchmarking

/// The scenario `move-object`: the cost of a move among few and among many objects.
enum MoveObject {
    static let scenario = Scenario(
        "move-object", "a commit that moves one of 100,000 objects, beside one of 100"
    ) { bench, finding in
        let few = try ServerKind.startStorekeeper(bench.workplace, data: "none")
        defer { stop(few, &finding) }
        let many = try ServerKind.startStorekeeper(bench.workplace, data: "none")
        defer { stop(many, &finding) }
        let manyCount = bench.effort.isQuick ? 1000 : 100_000
        try Objects.fill(few, 100)
        try Objects.fill(many, manyCount)
        try compare(
            ("one of 100", { try bench.load(few, Objects.moves(among: 0..<100), $0) }),
            ("one of \(manyCount)", { try bench.load(many, Objects.moves(among: 0..<manyCount), $0) }),
            wanted: 1.3, bench, &finding)
    }
}

/// The scenario `get-object`: the cost of a read of one of many objects, beside a read of a small state.
enum GetObject {
    static let scenario = Scenario(
        "get-object", "GET of one of 100,000 objects by pointer, beside GET of a small state"
    ) { bench, finding in
        let server = try ServerKind.startStorekeeper(bench.workplace, data: "none")
        defer { stop(server, &finding) }
        let count = bench.effort.isQuick ? 1000 : 100_000
        try Objects.fill(server, count)
        try compare(
            ("small state", { try bench.load(server, [.get("/v1/state/counter")], $0) }),
            (
                "one of \(count)",
                { try Objects.read(server, count, connections: 64, seconds: $0, in: bench.workplace) }
            ),
            wanted: 1.6, bench, &finding)
    }
}

extension Bench {
    /// Runs one load of 64 connections.
    fileprivate func load(_ server: Server, _ requests: [LoadRequest], _ seconds: Int) throws -> Reading {
        try Wrk.load(server, requests, connections: 64, seconds: seconds, in: workplace)
    }
}

/// Measures two loads of so many seconds in turn, and judges the CPU time of the second by that of the first.
private func compare(
    _ one: (who: String, load: (Int) throws -> Reading), _ other: (who: String, load: (Int) throws -> Reading),
    wanted: Double, _ bench: Bench, _ finding: inout Finding
) throws {
    finding.series = [one, other].map { Series(who: $0.who) }
    for run in 0..<bench.effort.runs + 1 {
        for (index, load) in [one, other].enumerated() {
            let reading = try load.load(run == 0 ? 1 : bench.effort.seconds)
            if run > 0 { finding.series[index].runs.append(reading) }
        }
    }
    if let ratio = finding.series[1].ratio(of: \.cpuMicroseconds, to: finding.series[0]) {
        finding.judgements.append(Judgement("CPU of \(other.who) / of \(one.who)", ratio, .atMost, wanted))
    }
}
