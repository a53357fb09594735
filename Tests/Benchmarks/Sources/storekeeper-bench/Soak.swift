internal import Benchmarking
internal import FoundationEssentials

/// The scenario `soak`: resident memory under a long load of actions.
enum Soak {
    static let scenario = Scenario(
        "soak", "resident memory under durable actions on a state of fixed size, for as long as --soak-seconds says"
    ) { bench, finding in
        let server = try ServerKind.startStorekeeper(bench.workplace, data: bench.workplace.path("data").path)
        defer { stop(server, &finding) }
        var resident: [Double] = []
        let slice = max(1, bench.effort.soakSeconds / 40)
        var commitsCount = 0.0
        finding.series = [Series(who: "storekeeper")]
        for _ in 0..<max(4, bench.effort.soakSeconds / slice) {
            let reading = try Wrk.load(
                server, [server.conversation.post ?? server.conversation.get], connections: 64, seconds: slice,
                in: bench.workplace)
            finding.series[0].runs.append(reading)
            commitsCount += (reading.perSecond ?? 0) * Double(slice)
            resident.append(reading.residentKiB ?? 0)
        }
        finding.remarks.append("\(commitsCount.readable) commits")
        // The history and the caches fill during the first half; growth after that has no bound.
        let half = resident.count / 2
        if let middle = resident.prefix(half).max(), let end = resident.dropFirst(half).max() {
            finding.judgements.append(
                Judgement("most memory of the second half / of the first", end / middle, .atMost, 1.05))
        }
    }
}
