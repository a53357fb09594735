internal import Benchmarking

/// A server that runs: its processes, its port, and how one talks with it.
struct Server {
    let who: String
    let processes: [ChildProcess]
    let port: UInt16
    let conversation: Conversation

    var cpuMicroseconds: Double { processes.reduce(0) { $0 + $1.cpuMicroseconds } }
    var residentKiB: Double { processes.reduce(0) { $0 + $1.residentKiB } }

    func stop() throws {
        for process in processes { try process.stop() }
    }
}

/// The same things said to different servers; nil for what one does not know.
struct Conversation: Sendable {
    /// Reads the small state.
    var get: LoadRequest
    /// Changes the small state.
    var post: LoadRequest?
    /// Waits for the next change of the state that has this entity tag.
    var wait: (@Sendable (_ tag: String) -> LoadRequest)?
    /// Asks for a stream of events, one for each change.
    var stream: LoadRequest?
    /// The name of the gauge in `/metrics` that counts who waits.
    var waitersMetric: String?

    /// An action of 99 bytes, as they usually are.
    static let action =
        #"{"type":"counter/add","payload":{"amount":1},"meta":{"note":"as long as an action usually is, is"}}"#
}

/// A kind of server, and how to start one.
struct Contestant: Sendable {
    /// Where a server keeps what it is told.
    enum Storage {
        case memory
        case disk
    }

    let who: String
    /// Starts one; nil if it is not installed or does not keep its state in this way.
    let start: @Sendable (Workplace, Storage) throws -> Server?
}

extension Contestant {
    /// Those that take part, the yardstick first.
    static func all(_ effort: Effort) -> [Contestant] {
        [limit, storekeeper] + (effort.hasPeers ? [nginx, webdis, node] : [])
    }
}
