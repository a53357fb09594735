internal import Benchmarking
internal import Foundation

/// The scenario `watched-posts`: one client posts one action after the other, with and without watches.
enum WatchedPosts {
    static let scenario = Scenario(
        "watched-posts",
        "POST by one client in memory on a state of 5 MB: unwatched, with a stream of the whole state, with 10,000 followers"
    ) { bench, finding in
        let followersCount = bench.effort.count(10_000)
        var servers: [Server] = []
        defer { for server in servers { stop(server, &finding) } }
        for name in ["unwatched", "one stream of the state", "\(followersCount) followers of one filter"] {
            let server = try ServerKind.startStorekeeper(bench.workplace, data: "none")
            servers.append(server)
            try fill(server, bench.effort.isQuick ? 1000 : 40_000)
            finding.series.append(Series(who: name))
        }
        let reader = StreamReader(try Connection(servers[1].port))
        try reader.start(LoadRequest.get("/v1/state", fields: [("Accept", "text/event-stream")]))
        let add = LoadRequest.post("/v1/actions", json: #"{"type":"counter/add","payload":{"amount":1}}"#)
        for _ in 0..<bench.effort.runs {
            // A wait ends after 50 seconds, so the followers of each run begin their own.
            let fleet = try park(followersCount, servers[2])
            for (index, server) in servers.enumerated() {
                finding.series[index].runs.append(
                    try Wrk.load(server, [add], connections: 1, seconds: bench.effort.seconds, in: bench.workplace))
            }
            let early = try fleet.receive(.answer, count: 1, seconds: 0.2)
            guard early.isEmpty else { throw Failure("\(early.count) followers were woken by commits of others") }
        }
        finding.remarks.append("the stream has sent \(reader.bytesCount >> 20) MB")
        for (index, subject) in [(1, "p50 with a stream / unwatched"), (2, "p50 with followers / unwatched")] {
            if let ratio = finding.series[index].ratio(of: \.p50Milliseconds, to: finding.series[0]) {
                finding.judgements.append(Judgement(subject, ratio, .atMost, 1.1))
            }
        }
    }

    /// Tasks that make the state about 130 bytes larger each.
    private static func fill(_ server: Server, _ count: Int) throws {
        let connection = try Connection(server.port)
        let title = String(repeating: "x", count: 90)
        for start in stride(from: 0, to: count, by: 4000) {
            try connection.load(
                (start..<min(count, start + 4000)).map {
                    #"{"type":"tasks/add","payload":{"id":\#($0),"title":"\#(title)"}}"#
                })
        }
    }

    /// Followers of one filter that begin at ten different cursors, with commits between.
    private static func park(_ count: Int, _ server: Server) throws -> Fleet {
        let control = try Connection(server.port)
        let fleet = try Fleet(count, server.port)
        var cursors: [String] = []
        for _ in 0..<10 {
            let answer = try control.ask(.post("/v1/actions", json: #"{"type":"counter/add","payload":{"amount":1}}"#))
            cursors.append(answer.frame.fields["state-cursor"] ?? "")
        }
        try fleet.send { index in
            LoadRequest.get("/v1/changes?path=/tasks&wait=50&since=\(cursors[index % cursors.count])").bytes
        }
        try server.awaitGauge("storekeeper_waiters", Double(count), control)
        return fleet
    }
}

/// Reads a stream on a thread of its own and discards the bytes.
///
/// `@unchecked Sendable`: the lock guards the count, and only the reading thread uses the connection after the start.
private final class StreamReader: @unchecked Sendable {
    private let connection: Connection
    private let lock = NSLock()
    private var count = 0

    init(_ connection: Connection) { self.connection = connection }

    var bytesCount: Int { lock.withLock { count } }

    /// Sends the request and reads until the server ends the stream, or the process ends.
    func start(_ request: LoadRequest) throws {
        try connection.send(request)
        Thread { [self] in
            while let read = connection.skip(), read > 0 { lock.withLock { count += read } }
        }.start()
    }
}
