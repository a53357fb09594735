internal import Benchmarking

/// A scenario in which thousands of clients wait for one value, and one action wakes them all.
struct Wakes {
    let name: String
    let summary: String
    let waitKind: WaiterLoad.WaitKind

    static var scenarios: [Scenario] {
        [
            Wakes(
                name: "wake-one-selection", summary: "10,000 long-polls on one selection, all woken by one action",
                waitKind: .longPoll),
            Wakes(
                name: "sse", summary: "10,000 event streams, one event to each from one action", waitKind: .stream),
        ].map { row in Scenario(row.name, row.summary) { try row.measure($0, &$1) } }
    }

    private func measure(_ bench: Bench, _ finding: inout Finding) throws {
        let waiterLoads = try WaiterLoad.gather(bench, waitKind, bench.effort.count(10_000), &finding)
        defer { for waiterLoad in waiterLoads { stop(waiterLoad.server, &finding) } }
        for run in 0..<bench.effort.runs + 1 {
            for (index, waiterLoad) in waiterLoads.enumerated() {
                let reading = try waiterLoad.round()
                // The first run warms up.
                if run > 0 { finding.series[index].runs.append(reading) }
            }
        }
        judge(&finding)
    }

    private func judge(_ finding: inout Finding) {
        guard let limit = finding.series(of: "C"), let ours = finding.series(of: "storekeeper") else { return }
        if let ratio = ours.ratio(of: \.lastMilliseconds, to: limit) {
            finding.judgements.append(Judgement("last answer, of storekeeper / of C", ratio, .atMost, 1.15))
        }
        if let nchan = finding.series(of: "nginx + nchan"), let ratio = ours.ratio(of: \.lastMilliseconds, to: nchan) {
            finding.judgements.append(Judgement("last answer, of storekeeper / of nchan", ratio, .atMost, 1))
        }
        if case .longPoll = waitKind, let each = ours.median.residentEachKiB {
            finding.judgements.append(Judgement("KiB resident for each parked", each, .atMost, 6))
        }
    }
}
