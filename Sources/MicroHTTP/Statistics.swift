import Synchronization

/// What a server is holding, read from any thread; each number is true of the end of a recent loop pass.
public struct Statistics: Sendable, Equatable {
    /// Connections open now.
    public var connections = 0
    /// Exchanges waiting for something.
    public var waiting = 0
    /// Exchanges being worked on.
    public var working = 0
    /// Requests received since the start.
    public var requests = 0
    /// Requests refused by the transport since the start.
    public var refused = 0

    mutating func add(_ other: Statistics) {
        connections += other.connections
        waiting += other.waiting
        working += other.working
        requests += other.requests
        refused += other.refused
    }
}

/// The statistics of a server's loops, read from any thread.
///
/// Made before the server, so that a handler can tell them.
public final class ServerGauges: Sendable {
    let loops: [LoopGauges]

    /// Makes gauges for so many loops.
    public init(loops: Int) {
        self.loops = (0..<max(1, loops)).map { _ in LoopGauges() }
    }

    /// What the server is holding at the moment.
    public var statistics: Statistics {
        loops.reduce(into: Statistics()) { $0.add($1.statistics) }
    }
}

/// A loop's side of ``Statistics``: written by the loop thread, read by any.
final class LoopGauges: Sendable {
    private let connections = Atomic(0)
    private let waiting = Atomic(0)
    private let working = Atomic(0)
    private let requests = Atomic(0)
    private let refused = Atomic(0)

    var statistics: Statistics {
        Statistics(
            connections: connections.load(ordering: .relaxed), waiting: waiting.load(ordering: .relaxed),
            working: working.load(ordering: .relaxed), requests: requests.load(ordering: .relaxed),
            refused: refused.load(ordering: .relaxed))
    }

    func publish(_ statistics: Statistics) {
        connections.store(statistics.connections, ordering: .relaxed)
        waiting.store(statistics.waiting, ordering: .relaxed)
        working.store(statistics.working, ordering: .relaxed)
        requests.store(statistics.requests, ordering: .relaxed)
        refused.store(statistics.refused, ordering: .relaxed)
    }
}
