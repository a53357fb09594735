internal import Benchmarking
internal import Glibc

/// Thousands of long-polls wait for the same part of the state, and one action changes it.
enum WakeOneSelection {
    static let scenario = Scenario(
        "wake-one-selection", "10,000 long-polls on one selection, all woken by one action"
    ) { bench, finding in
        let count = bench.effort.count(10_000)
        let parties = try Party.gather(bench, count, &finding) { $0.conversation.wait != nil }
        defer { for party in parties { stop(party.server, &finding) } }
        for run in 0..<bench.effort.runs + 1 {
            for (index, party) in parties.enumerated() {
                try party.park()
                let reading = try party.wake(.answer)
                // The first is for nothing but to be warm, and to have the memory that parking takes.
                if run > 0 { finding.series[index].runs.append(reading) }
            }
        }
        judgeWakes(&finding)
        if let each = finding.series(of: "storekeeper")?.median.residentEachKiB {
            finding.judgements.append(Judgement("KiB resident for each parked", each, .atMost, 6))
        }
    }
}

/// Thousands of event streams, and one action that all are told of.
enum Streams {
    static let scenario = Scenario(
        "sse", "10,000 event streams, one event to each from one action"
    ) { bench, finding in
        let count = bench.effort.count(10_000)
        let parties = try Party.gather(bench, count, &finding) { $0.conversation.stream != nil }
        defer { for party in parties { stop(party.server, &finding) } }
        for party in parties { try party.openStreams() }
        for run in 0..<bench.effort.runs + 1 {
            for (index, party) in parties.enumerated() {
                let reading = try party.wake(.event)
                if run > 0 { finding.series[index].runs.append(reading) }
            }
        }
        judgeWakes(&finding)
    }
}

/// The last answer beside C's and, where it is there, nchan's.
private func judgeWakes(_ finding: inout Finding) {
    guard let limit = finding.series(of: "C"), let ours = finding.series(of: "storekeeper") else { return }
    if let ratio = ours.ratio(of: \.lastMilliseconds, to: limit) {
        finding.judgements.append(Judgement("last answer, of storekeeper / of C", ratio, .atMost, 1.15))
    }
    if let nchan = finding.series(of: "nginx + nchan"), let ratio = ours.ratio(of: \.lastMilliseconds, to: nchan) {
        finding.judgements.append(Judgement("last answer, of storekeeper / of nchan", ratio, .atMost, 1))
    }
}

/// A server and the clients that wait on it.
final class Party {
    let server: Server
    private let fleet: Fleet
    private let control: Connection
    private let residentBeforeKiB: Double

    init(_ server: Server, _ count: Int) throws {
        self.server = server
        control = try Connection(server.port)
        residentBeforeKiB = server.residentKiB
        fleet = try Fleet(count, server.port)
    }

    /// Starts all servers that can have so many clients of this kind; says why the others are not there.
    static func gather(
        _ bench: Bench, _ count: Int, _ finding: inout Finding, where knows: (Server) -> Bool
    ) throws -> [Party] {
        var parties: [Party] = []
        for contestant in Contestant.all(bench.effort) {
            guard let server = try contestant.start(bench.workplace, .memory) else { continue }
            guard knows(server) else {
                stop(server, &finding)
                continue
            }
            do {
                if let stream = server.conversation.stream { try refuseIfNotServed(server, stream, finding.scenario) }
                parties.append(try Party(server, count))
                finding.series.append(Series(who: server.who))
            } catch {
                finding.remarks.append("\(server.who): \(error)")
                stop(server, &finding)
            }
        }
        return parties
    }

    private static func refuseIfNotServed(_ server: Server, _ stream: LoadRequest, _ scenario: String) throws {
        guard scenario == "sse" else { return }
        let connection = try Connection(server.port)
        try connection.send(stream)
        let frame = try connection.receive().frame
        guard frame.status == 200, frame.fields["content-type"]?.hasPrefix("text/event-stream") == true else {
            throw Failure("not served: \(frame.status) \(frame.fields["content-type"] ?? "")")
        }
    }

    /// Makes every client wait, and returns when all do.
    func park() throws {
        let tag =
            try server.conversation.waitersMetric != nil || server.conversation.get.path != "/state"
            || server.who == "Node" ? control.ask(server.conversation.get).frame.fields["etag"] ?? "" : ""
        guard let request = server.conversation.wait?(tag).bytes else { return }
        try fleet.send { _ in request }
        try settle()
    }

    func openStreams() throws {
        guard let request = server.conversation.stream?.bytes else { return }
        try fleet.send { _ in request }
        let heads = try fleet.receive(.head, count: fleet.count)
        guard heads.count == fleet.count else {
            throw Failure("\(server.who): \(heads.count) of \(fleet.count) streams")
        }
        try fleet.drain(seconds: 0.5)
    }

    /// Changes the state and waits until everybody has been told.
    func wake(_ awaited: Awaited) throws -> Reading {
        guard let post = server.conversation.post else { throw Failure("\(server.who) cannot be changed") }
        var reading = Reading()
        reading.residentEachKiB = (server.residentKiB - residentBeforeKiB) / Double(fleet.count)
        let before = server.cpuMicroseconds
        let begun = ContinuousClock.now
        try control.send(post)
        let arrivals = try fleet.receive(awaited, count: fleet.count)
        _ = try control.receive()
        guard arrivals.count == fleet.count else {
            throw Failure("\(server.who): \(arrivals.count) of \(fleet.count) were told")
        }
        // What the server does after its last answer counts too.
        usleep(100_000)
        reading.cpuMicroseconds = (server.cpuMicroseconds - before) / Double(fleet.count)
        let times = arrivals.map { begun.duration(to: $0.instant) / .milliseconds(1) }
        reading.p50Milliseconds = times.percentile(0.5)
        reading.p99Milliseconds = times.percentile(0.99)
        reading.lastMilliseconds = times.max()
        return reading
    }

    /// Returns when all wait: the server's own count where it has one, a moment elsewhere.
    private func settle() throws {
        guard let metric = server.conversation.waitersMetric else {
            usleep(500_000)
            return
        }
        try server.awaitGauge(metric, Double(fleet.count), control)
    }
}

extension Server {
    /// Returns when a gauge in `/metrics` has this value.
    func awaitGauge(_ name: String, _ value: Double, _ connection: Connection) throws {
        let end = ContinuousClock.now + .seconds(30)
        while true {
            let found = try Facts.metric(name, in: connection.ask(.get("/metrics")).body)
            if found == value { return }
            guard .now < end else { throw Failure("\(name) is \(found ?? .nan) and was to be \(value)") }
            usleep(20_000)
        }
    }
}
