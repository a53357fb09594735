internal import Benchmarking
internal import Glibc

/// The scenario `wake-one-of-many`: each of thousands of clients waits for another object, and one object moves.
enum WakeOneOfMany {
    static let scenario = Scenario(
        "wake-one-of-many",
        "10,000 long-polls on 10,000 of 100,000 objects, while others move, and when one of them does"
    ) { bench, finding in
        let watchersCount = bench.effort.count(10_000)
        let objectsCount = bench.effort.isQuick ? 1000 : 100_000
        let unwatched = Objects.moves(among: watchersCount..<objectsCount)
        let free = try ServerKind.startStorekeeper(bench.workplace, data: "none")
        defer { stop(free, &finding) }
        let busy = try ServerKind.startStorekeeper(bench.workplace, data: "none")
        defer { stop(busy, &finding) }
        for server in [free, busy] {
            try Objects.fill(server, objectsCount)
            _ = try Wrk.load(server, unwatched, connections: 16, seconds: 1, in: bench.workplace)
        }
        let control = try Connection(busy.port)
        let tag = try control.ask(.get("/v1/state/canvas/objects/0")).frame.fields["etag"] ?? ""
        finding.series = [Series(who: "none parked"), Series(who: "\(watchersCount) parked")]
        for _ in 0..<bench.effort.runs {
            // A wait ends after 50 seconds, so each run begins its own.
            let fleet = try Fleet(watchersCount, busy.port)
            try fleet.send { index in
                LoadRequest.get("/v1/state/canvas/objects/\(index)?wait=50", fields: [("If-None-Match", tag)]).bytes
            }
            try busy.awaitGauge("storekeeper_waiters", Double(watchersCount), control)
            for (index, server) in [free, busy].enumerated() {
                finding.series[index].runs.append(
                    try Wrk.load(
                        server, unwatched, connections: 16, seconds: bench.effort.seconds, in: bench.workplace))
            }
            let early = try fleet.receive(.answer, count: 1, seconds: 0.2)
            guard early.isEmpty else { throw Failure("\(early.count) were woken by moves of other objects") }
            try wakeEach(of: [0, watchersCount / 2, watchersCount - 1], fleet, control)
        }
        if let ratio = finding.series[1].ratio(of: \.cpuMicroseconds, to: finding.series[0]) {
            finding.judgements.append(Judgement("commit with all parked / with none", ratio, .atMost, 2))
        }
    }

    /// Moves watched objects one after the other; each time, only the waiter of this object may get an answer.
    private static func wakeEach(
        of ids: [Int], _ fleet: Fleet, _ control: Connection
    ) throws {
        for id in ids {
            try control.ask(move(id, to: 5))
            let woken = try fleet.receive(.answer, count: 2, seconds: 0.2).map(\.index)
            guard woken == [id] else { throw Failure("a move of object \(id) has woken \(woken)") }
        }
        // The objects move back, so that all have equal JSON again.
        for id in ids { try control.ask(move(id, to: 0)) }
    }

    private static func move(_ id: Int, to x: Int) -> LoadRequest {
        .post("/v1/actions", json: #"{"type":"canvas/moveObject","payload":{"id":\#(id),"x":\#(x),"y":0}}"#)
    }
}
