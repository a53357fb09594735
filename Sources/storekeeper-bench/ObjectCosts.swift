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
            [
                ("one of 100", few, Objects.moves(among: 0..<100)),
                ("one of \(manyCount)", many, Objects.moves(among: 0..<manyCount)),
            ],
            wanted: 1.5, bench, &finding)
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
            [
                ("small state", server, [.get("/v1/state/counter")]),
                ("one of \(count)", server, Objects.gets(among: 0..<count)),
            ],
            wanted: 1.3, bench, &finding)
    }
}

/// Measures two loads in turn and judges the quotient of their CPU times.
private func compare(
    _ loads: [(who: String, server: Server, requests: [LoadRequest])], wanted: Double, _ bench: Bench,
    _ finding: inout Finding
) throws {
    finding.series = loads.map { Series(who: $0.who) }
    for run in 0..<bench.effort.runs + 1 {
        for (index, load) in loads.enumerated() {
            let reading = try Wrk.load(
                load.server, load.requests, connections: 64, seconds: run == 0 ? 1 : bench.effort.seconds,
                in: bench.workplace)
            if run > 0 { finding.series[index].runs.append(reading) }
        }
    }
    if let ratio = finding.series[1].ratio(of: \.cpuMicroseconds, to: finding.series[0]) {
        finding.judgements.append(Judgement("CPU of \(loads[1].who) / of \(loads[0].who)", ratio, .atMost, wanted))
    }
}
