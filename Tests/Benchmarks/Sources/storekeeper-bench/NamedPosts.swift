internal import Benchmarking
internal import FoundationEssentials

/// The scenario `post-durable-named`: what an ID or an `Idempotency-Key` on each action costs.
enum NamedPosts {
    static let scenario = Scenario(
        "post-durable-named",
        "POST of an action, synced to disk, 64 connections: without a name, with an ID and with an Idempotency-Key on each"
    ) { bench, finding in
        // All three have a number of their own in each request, so that wrk makes the same effort for each.
        let loads: [(who: String, request: LoadRequest)] = [
            ("without", request(note: "%d")),
            ("with an id", request(id: "client-%d")),
            ("with a key", request(key: "client-%d")),
        ]
        var servers: [Server] = []
        defer { for server in servers { stop(server, &finding) } }
        for load in loads {
            servers.append(
                try ServerKind.startStorekeeper(bench.workplace, data: bench.workplace.path("data").path))
            finding.series.append(Series(who: load.who))
        }
        for run in 0..<bench.effort.runs + 1 {
            for (index, load) in loads.enumerated() {
                let reading = try Wrk.load(
                    servers[index], numbered: load.request, from: run * 100_000_000, connections: 64,
                    seconds: run == 0 ? 1 : bench.effort.seconds, in: bench.workplace)
                if run > 0 { finding.series[index].runs.append(reading) }
            }
        }
        for series in finding.series.dropFirst() {
            guard let ratio = series.ratio(of: \.perSecond, to: finding.series[0]) else { continue }
            finding.judgements.append(Judgement("requests/s \(series.who) / without", ratio, .atLeast, 0.75))
        }
    }

    private static func request(note: String = "as usual", id: String? = nil, key: String? = nil) -> LoadRequest {
        let name = id.map { #""id":"\#($0)","# } ?? ""
        var request = LoadRequest.post(
            "/v1/actions",
            json: #"{\#(name)"type":"counter/add","payload":{"amount":1},"meta":{"note":"\#(note)"}}"#)
        if let key { request.fields.append(("Idempotency-Key", key)) }
        return request
    }
}
