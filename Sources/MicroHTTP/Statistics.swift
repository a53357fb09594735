import Synchronization

/// The figures of a server; each number is that of the end of a recent iteration of each loop.
package struct Statistics: Sendable, Equatable {
    /// Open connections, parked ones included.
    package var connections = 0
    /// Exchanges that wait, streams included.
    package var waiting = 0
    /// Exchanges that a handler works on.
    package var working = 0
    /// Complete requests since the start.
    package var requests = 0
    /// Requests that the transport has refused since the start.
    package var refused = 0

    mutating func add(_ other: Statistics) {
        connections += other.connections
        waiting += other.waiting
        working += other.working
        requests += other.requests
        refused += other.refused
    }
}

/// The statistics of a server's loops; any thread may read them.
///
/// The caller makes the gauges before the server, so that a handler can report them.
package final class ServerGauges: Sendable {
    let loops: [LoopGauges]
    /// The memory that the clients of all loops occupy.
    package let memory: MemoryBudget

    /// Makes gauges for this number of loops, at least one.
    ///
    /// - Parameter memoryBytesMax: ``ServerConfiguration/memoryBytesMax``.
    package init(loops: Int, memoryBytesMax: Int = ServerConfiguration().memoryBytesMax) {
        memory = MemoryBudget(bytesMax: memoryBytesMax)
        self.loops = (0..<max(1, loops)).map { _ in LoopGauges() }
    }

    /// The sum of the statistics of all loops.
    package var statistics: Statistics {
        loops.reduce(into: Statistics()) { $0.add($1.statistics) }
    }

    /// The answers of all loops.
    package var answers: Answers { loops.reduce(into: Answers()) { $0.add($1.answers.total) } }
}

/// The statistics of one loop: the loop thread writes them, any thread reads them.
final class LoopGauges: Sendable {
    private let connections = Atomic(0)
    private let waiting = Atomic(0)
    private let working = Atomic(0)
    private let requests = Atomic(0)
    private let refused = Atomic(0)
    let answers = AnswerCounts()

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
