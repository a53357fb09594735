internal import Benchmarking
internal import Glibc

/// A server that thousands wait on together.
final class Party {
    /// What the clients wait for.
    enum Occasion {
        /// The answer to a long-poll.
        case longPoll
        /// An event in a stream.
        case stream
    }

    let server: Server
    private let occasion: Occasion
    private let count: Int
    private let control: Connection
    private var residentEachKiB: Double?

    init(_ server: Server, _ occasion: Occasion, _ count: Int) throws {
        self.server = server
        self.occasion = occasion
        self.count = count
        control = try Connection(server.port)
    }

    /// Starts all servers that know this occasion; says why the others are not there.
    static func gather(
        _ bench: Bench, _ occasion: Occasion, _ count: Int, _ finding: inout Finding
    ) throws -> [Party] {
        var parties: [Party] = []
        for contestant in Contestant.all(bench.effort) {
            guard let server = try contestant.start(bench.workplace, .memory) else { continue }
            do {
                guard let request = server.conversation.request(for: occasion) else {
                    throw Failure("does not know this")
                }
                if case .stream = occasion { try requireStream(server, request("")) }
                parties.append(try Party(server, occasion, count))
                finding.series.append(Series(who: server.who))
            } catch {
                finding.remarks.append("\(server.who): \(error)")
                stop(server, &finding)
            }
        }
        return parties
    }

    private static func requireStream(_ server: Server, _ request: LoadRequest) throws {
        let connection = try Connection(server.port)
        try connection.send(request)
        let frame = try connection.receive().frame
        guard frame.status == 200, frame.fields["content-type"]?.hasPrefix("text/event-stream") == true else {
            throw Failure("not served: \(frame.status) \(frame.fields["content-type"] ?? "")")
        }
    }

    /// One round: all come, wait, are told, and leave.
    ///
    /// They leave because a process may not have as many files as all parties together have clients.
    func round() throws -> Reading {
        let reading = try gatherAndWake()
        usleep(200_000)
        // Some see that a client has left only when they write to it.
        if let post = server.conversation.post { try control.ask(post) }
        usleep(200_000)
        return reading
    }

    private func gatherAndWake() throws -> Reading {
        let before = server.residentKiB
        let fleet = try assemble()
        // In later rounds the server has memory left from the ones before.
        if residentEachKiB == nil { residentEachKiB = (server.residentKiB - before) / Double(count) }
        var reading = try wake(fleet)
        reading.residentEachKiB = residentEachKiB
        return reading
    }

    /// Clients that wait, all of them.
    func assemble() throws -> Fleet {
        let tag = try control.ask(server.conversation.get).frame.fields["etag"] ?? ""
        guard let request = server.conversation.request(for: occasion)?(tag).bytes else {
            throw Failure("\(server.who) does not know this")
        }
        let fleet = try Fleet(count, server.port)
        try fleet.send { _ in request }
        switch occasion {
        case .stream:
            let heads = try fleet.receive(.head, count: count)
            guard heads.count == count else { throw Failure("\(server.who): \(heads.count) of \(count) streams") }
            // Greetings are not what is measured.
            try fleet.drain(seconds: 0.5)
        case .longPoll:
            // The server's own count where it has one, a moment elsewhere.
            if let metric = server.conversation.waitersMetric {
                try server.awaitGauge(metric, Double(count), control)
            } else {
                usleep(500_000)
            }
        }
        return fleet
    }

    /// Changes the state and waits until everybody has been told.
    private func wake(_ fleet: Fleet) throws -> Reading {
        guard let post = server.conversation.post else { throw Failure("\(server.who) cannot be changed") }
        let before = server.cpuMicroseconds
        let begun = ContinuousClock.now
        try control.send(post)
        let arrivals = try fleet.receive(occasion.awaited, count: count)
        _ = try control.receive()
        guard arrivals.count == count else { throw Failure("\(server.who): \(arrivals.count) of \(count) were told") }
        // What the server does after its last answer counts too.
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

extension Party.Occasion {
    fileprivate var awaited: Awaited {
        switch self {
        case .longPoll: .answer
        case .stream: .event
        }
    }
}

extension Conversation {
    /// What asks for this, given the entity tag of what is there now.
    fileprivate func request(for occasion: Party.Occasion) -> ((_ tag: String) -> LoadRequest)? {
        switch occasion {
        case .longPoll: wait
        case .stream: stream.map { stream in { _ in stream } }
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
