internal import Benchmarking
internal import Glibc

/// A server with thousands of waiting clients.
final class WaiterLoad {
    /// The kind of wait of the clients.
    enum WaitKind {
        /// The answer to a long-poll.
        case longPoll
        /// An event in a stream.
        case stream
        /// The answer to a long-poll for what follows the end of a stream: `probe` tells the end in a field.
        case follow(probe: String, field: String, target: String)
    }

    let server: Server
    private let waitKind: WaitKind
    private let count: Int
    private let control: Connection
    private var residentEachKiB: Double?

    init(_ server: Server, _ waitKind: WaitKind, _ count: Int) throws {
        self.server = server
        self.waitKind = waitKind
        self.count = count
        control = try Connection(server.port)
    }

    /// Starts all servers that offer a kind of wait; a remark says why another server is missing.
    static func gather(
        _ bench: Bench, _ waitKind: WaitKind, _ count: Int, _ finding: inout Finding
    ) throws -> [WaiterLoad] {
        var waiterLoads: [WaiterLoad] = []
        for kind in ServerKind.all(bench.effort) {
            guard let server = try kind.start(bench.workplace, .memory) else { continue }
            do {
                guard let request = server.conversation.request(for: waitKind) else {
                    throw Failure("does not know this")
                }
                if case .stream = waitKind { try requireStream(server, request("")) }
                waiterLoads.append(try WaiterLoad(server, waitKind, count))
                finding.series.append(Series(who: server.who))
            } catch {
                finding.remarks.append("\(server.who): \(error)")
                stop(server, &finding)
            }
        }
        return waiterLoads
    }

    private static func requireStream(_ server: Server, _ request: LoadRequest) throws {
        let connection = try Connection(server.port)
        try connection.send(request)
        let frame = try connection.receive().frame
        guard frame.status == 200, frame.fields["content-type"]?.hasPrefix("text/event-stream") == true else {
            throw Failure("not served: \(frame.status) \(frame.fields["content-type"] ?? "")")
        }
    }

    /// One round: all clients connect, wait, are woken and disconnect.
    ///
    /// They disconnect because the clients of all servers together can exceed the limit of open files.
    func round() throws -> Reading {
        let reading = try gatherAndWake()
        usleep(200_000)
        // Some servers notice that a client has disconnected only when they write to it.
        if let post = server.conversation.post { try control.ask(post) }
        usleep(200_000)
        return reading
    }

    private func gatherAndWake() throws -> Reading {
        let before = server.residentKiB
        let fleet = try assemble()
        // In later rounds the server still has memory of the earlier ones.
        if residentEachKiB == nil {
            // What a server needs only while so many clients connect is no memory of those who wait.
            usleep(500_000)
            residentEachKiB = (server.residentKiB - before) / Double(count)
        }
        var reading = try wake(fleet)
        reading.residentEachKiB = residentEachKiB
        return reading
    }

    /// Connects all clients and lets them wait.
    func assemble() throws -> Fleet {
        let request = try self.request()
        let fleet = try Fleet(count, server.port)
        try fleet.send { _ in request }
        switch waitKind {
        case .stream:
            let heads = try fleet.receive(.head, count: count)
            guard heads.count == count else { throw Failure("\(server.who): \(heads.count) of \(count) streams") }
            // The first event of a stream is not measured.
            try fleet.drain(seconds: 0.5)
        case .longPoll, .follow:
            // The server's gauge tells when all clients wait; without a gauge, a fixed time has to do.
            if let metric = server.conversation.waitersMetric {
                try server.awaitGauge(metric, Double(count), control)
            } else {
                usleep(500_000)
            }
        }
        return fleet
    }

    private func request() throws -> [UInt8] {
        if case .follow(let probe, let field, let target) = waitKind {
            return LoadRequest.get(target + (try control.ask(.get(probe)).frame.fields[field] ?? "")).bytes
        }
        let tag = try control.ask(server.conversation.get).frame.fields["etag"] ?? ""
        guard let request = server.conversation.request(for: waitKind)?(tag).bytes else {
            throw Failure("\(server.who) does not know this")
        }
        return request
    }

    /// Changes the state and waits until each client has its answer.
    private func wake(_ fleet: Fleet) throws -> Reading {
        guard let post = server.conversation.post else { throw Failure("\(server.who) cannot be changed") }
        let before = server.cpuMicroseconds
        let begun = ContinuousClock.now
        try control.send(post)
        let arrivals = try fleet.receive(waitKind.awaited, count: count)
        _ = try control.receive()
        guard arrivals.count == count else {
            throw Failure("\(server.who): \(arrivals.count) of \(count) were answered")
        }
        // The work of the server after its last answer counts, too.
        usleep(100_000)
        var reading = Reading()
        reading.cpuMicroseconds = (server.cpuMicroseconds - before) / Double(count)
        let times = arrivals.map { begun.duration(to: $0.instant) / .milliseconds(1) }
        reading.p50Milliseconds = times.percentile(0.5)
        reading.p99Milliseconds = times.percentile(0.99)
        reading.lastMilliseconds = times.max()
        return reading
    }
}

extension WaiterLoad.WaitKind {
    fileprivate var awaited: Awaited {
        switch self {
        case .longPoll, .follow: .answer
        case .stream: .event
        }
    }
}

extension Conversation {
    /// The request for a kind of wait, given the entity tag of the present value.
    fileprivate func request(for waitKind: WaiterLoad.WaitKind) -> ((_ tag: String) -> LoadRequest)? {
        switch waitKind {
        case .longPoll: wait
        case .stream: stream.map { stream in { _ in stream } }
        case .follow: nil
        }
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
