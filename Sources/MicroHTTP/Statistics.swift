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

/// The loop's side of ``Statistics``: written by the loop thread, read by any.
final class Gauges: Sendable {
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
