internal import Benchmarking
internal import Foundation

/// The scenario `start`: the time of a start on a long journal.
enum Start {
    static let scenario = Scenario(
        "start", "start with a journal of 1,000,000 commits: after an orderly stop, and after the process was killed"
    ) { bench, finding in
        let count = bench.effort.isQuick ? 10_000 : 1_000_000
        let data = bench.workplace.path("data").path
        try fill(data, to: count, bench)
        let bytes = try bytes(in: data)
        finding.judgements.append(
            Judgement(
                "bytes of the journal for each commit", Double(bytes) / Double(count), .atMost, 0.7 * bytesOfFormat1))
        finding.series = [Series(who: "after SIGTERM"), Series(who: "after SIGKILL")]
        for _ in 0..<min(3, bench.effort.runs) {
            finding.series[0].runs.append(
                try start(data, bench) { server in
                    // A crash leaves this many commits after the newest snapshot.
                    let lines = Array(repeating: Conversation.action, count: bench.effort.count(5000))
                    try Connection(server.port).load(lines)
                    for process in server.processes { process.kill() }
                })
            finding.series[1].runs.append(try start(data, bench) { try $0.stop() })
        }
        for series in finding.series {
            guard let last = series.median.lastMilliseconds else { continue }
            finding.judgements.append(Judgement("seconds until ready \(series.who)", last / 1000, .atMost, 1))
        }
    }

    /// What a commit of ``Conversation/action`` took in the format before this one, measured at 100,000 commits.
    private static let bytesOfFormat1 = 216.8

    private static func bytes(in directory: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: directory).reduce(0) { sum, name in
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
            return sum + (attributes[.size] as? Int ?? 0)
        }
    }

    /// Makes a journal with a number of commits, of a server that has stopped in order.
    static func fill(_ data: String, to count: Int, _ bench: Bench) throws {
        let server = try ServerKind.startStorekeeper(bench.workplace, data: data)
        let connection = try Connection(server.port)
        let version = try Int(connection.version())
        for start in stride(from: version, to: count, by: 50_000) {
            try connection.load(Array(repeating: Conversation.action, count: min(50_000, count - start)))
        }
        try server.stop()
    }

    /// Starts a server on a journal, measures the start, and ends the server.
    static func start(_ data: String, _ bench: Bench, ending: (Server) throws -> Void) throws -> Reading {
        let begun = ContinuousClock.now
        let server = try ServerKind.startStorekeeper(bench.workplace, data: data)
        var reading = Reading()
        reading.lastMilliseconds = begun.duration(to: .now) / .milliseconds(1)
        reading.residentKiB = server.residentKiB
        try ending(server)
        return reading
    }
}

extension Connection {
    /// The version of the server's state.
    func version() throws -> UInt64 {
        let cursor = try ask(.get("/v1")).frame.fields["state-cursor"] ?? ""
        guard let version = cursor.split(separator: ".").last.flatMap({ UInt64($0) }) else {
            throw Failure("\(cursor) is not a cursor")
        }
        return version
    }
}
