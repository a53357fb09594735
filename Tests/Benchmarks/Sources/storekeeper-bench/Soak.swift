internal import Benchmarking
internal import FoundationEssentials

/// The scenario `soak`: resident memory under a long load of actions.
enum Soak {
    static let scenario = Scenario(
        "soak", "resident memory under durable actions on a state of fixed size, for as long as --soak-seconds says"
    ) { bench, finding in
        let server = try ServerKind.startStorekeeper(bench.workplace, data: bench.workplace.path("data").path)
        defer { stop(server, &finding) }
        var curve = Chart.Curve("resident")
        let slice = max(1, bench.effort.soakSeconds / 40)
        var commitsCount = 0.0
        finding.series = [Series(who: "storekeeper")]
        for turn in 0..<max(4, bench.effort.soakSeconds / slice) {
            let reading = try Wrk.load(
                server, [server.conversation.post ?? server.conversation.get], connections: 64, seconds: slice,
                in: bench.workplace)
            finding.series[0].runs.append(reading)
            commitsCount += (reading.perSecond ?? 0) * Double(slice)
            curve.points.append(.init(Double((turn + 1) * slice), (reading.residentKiB ?? 0) / 1024))
        }
        finding.charts.append(
            Chart(
                name: "soak", title: "Resident memory under actions", sizes: "seconds", figures: "MiB", curves: [curve])
        )
        finding.remarks.append("\(commitsCount.readable) commits")
        // The history and the caches fill during the first half; growth after that has no bound.
        let halves = curve.points.count / 2
        if let middle = curve.points.prefix(halves).map(\.figure).max(),
            let end = curve.points.dropFirst(halves).map(\.figure).max()
        {
            finding.judgements.append(
                Judgement("most memory of the second half / of the first", end / middle, .atMost, 1.05))
        }
    }
}
