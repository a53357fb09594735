internal import Benchmarking

/// A scenario with one request on many connections, for all servers in turn.
struct Throughput {
    let name: String
    let summary: String
    let request: any KeyPath<Conversation, LoadRequest?> & Sendable
    let storage: ServerKind.Storage
    let connections: Int
    /// The least quotient of the C program's CPU time and that of storekeeper.
    var cpuWanted: Double?
    /// The least quotient of storekeeper's requests a second and those of the C program.
    var rateWanted: Double?
    /// The greatest quotient of storekeeper's median time of an answer and that of the C program.
    var timeWanted: Double?
    /// The name of the peer that storekeeper has to beat: in CPU time, and by a fifth in requests a second.
    var rival: String?

    static let table: [Throughput] = [
        Throughput(
            name: "get", summary: "GET of an unchanged small state, 64 connections", request: \.getAsOptional,
            storage: .memory, connections: 64, cpuWanted: 0.93),
        Throughput(
            name: "post", summary: "POST of an action of 99 bytes, in memory, 64 connections", request: \.post,
            storage: .memory, connections: 64, cpuWanted: 0.55),
        Throughput(
            name: "post-durable-1", summary: "POST of an action, synced to disk, 1 connection", request: \.post,
            storage: .disk, connections: 1, timeWanted: 1.3),
        Throughput(
            name: "post-durable-64", summary: "POST of an action, synced to disk, 64 connections", request: \.post,
            storage: .disk, connections: 64, rateWanted: 0.80, rival: "webdis + Redis"),
        Throughput(
            name: "post-durable-250", summary: "POST of an action, synced to disk, 250 connections", request: \.post,
            storage: .disk, connections: 250, rateWanted: 0.75, rival: "webdis + Redis"),
    ]

    static var scenarios: [Scenario] {
        table.map { row in Scenario(row.name, row.summary) { try row.measure($0, &$1) } }
    }

    private func measure(_ bench: Bench, _ finding: inout Finding) throws {
        var servers: [(server: Server, request: LoadRequest)] = []
        defer { for entry in servers { stop(entry.server, &finding) } }
        for kind in ServerKind.all(bench.effort) {
            guard let server = try kind.start(bench.workplace, storage) else { continue }
            guard let request = server.conversation[keyPath: request], server.who != "nginx + nchan" || name == "get"
            else {
                try server.stop()
                continue
            }
            servers.append((server, request))
            // The first load warms up caches, allocators and branch predictors.
            _ = try load(server, request, 1, bench)
            finding.series.append(Series(who: server.who))
        }
        // The servers take turns, so that a disturbance of the machine affects all of them.
        for _ in 0..<bench.effort.runs {
            for (index, entry) in servers.enumerated() {
                finding.series[index].runs.append(try load(entry.server, entry.request, bench.effort.seconds, bench))
            }
        }
        judge(&finding)
    }

    private func load(_ server: Server, _ request: LoadRequest, _ seconds: Int, _ bench: Bench) throws -> Reading {
        try Wrk.load(server, [request], connections: connections, seconds: seconds, in: bench.workplace)
    }

    private func judge(_ finding: inout Finding) {
        guard let limit = finding.series(of: "C"), let ours = finding.series(of: "storekeeper") else { return }
        finding.judge(
            "CPU of C / CPU of storekeeper", limit.ratio(of: \.cpuMicroseconds, to: ours), .atLeast, cpuWanted)
        finding.judge("requests/s of storekeeper / of C", ours.ratio(of: \.perSecond, to: limit), .atLeast, rateWanted)
        finding.judge(
            "median answer, of storekeeper / of C", ours.ratio(of: \.p50Milliseconds, to: limit), .atMost, timeWanted)
        if let rival, let theirs = finding.series(of: rival) {
            if let ratio = theirs.ratio(of: \.cpuMicroseconds, to: ours) {
                finding.judgements.append(Judgement("CPU of \(rival) / CPU of storekeeper", ratio, .atLeast, 1))
            }
            if let ratio = ours.ratio(of: \.perSecond, to: theirs) {
                finding.judgements.append(Judgement("requests/s of storekeeper / of \(rival)", ratio, .atLeast, 1.2))
            }
        }
    }
}

extension Finding {
    /// Compares a quotient with its aim; without an aim, the quotient becomes a remark.
    fileprivate mutating func judge(_ subject: String, _ ratio: Double?, _ bound: Judgement.Bound, _ wanted: Double?) {
        guard let ratio else { return }
        if let wanted {
            judgements.append(Judgement(subject, ratio, bound, wanted))
        } else {
            remarks.append("\(subject): \(ratio.fixed(2))")
        }
    }
}

extension Conversation {
    fileprivate var getAsOptional: LoadRequest? { self.get }
}

/// Stops a server after its measurement; an error becomes a remark.
func stop(_ server: Server, _ finding: inout Finding) {
    do {
        try server.stop()
    } catch {
        finding.remarks.append("\(error)")
    }
}
