internal import Benchmarking

/// A running server: its processes, its port and its requests.
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

/// The requests of the scenarios, in the form of one server; nil for those that it does not offer.
struct Conversation: Sendable {
    /// Reads the small state.
    var get: LoadRequest
    /// Changes the small state.
    var post: LoadRequest?
    /// Waits for the next change of the state that has this entity tag.
    var wait: (@Sendable (_ tag: String) -> LoadRequest)?
    /// Asks for a stream of events, one for each change.
    var stream: LoadRequest?
    /// The name of the gauge in `/metrics` that counts waiters.
    var waitersMetric: String?

    /// An action of 99 bytes, a usual length.
    static let action =
        #"{"type":"counter/add","payload":{"amount":1},"meta":{"note":"as long as an action usually is, is"}}"#
}

/// A kind of server, and how to start one.
struct ServerKind: Sendable {
    /// Where a server keeps its state.
    enum Storage {
        case memory
        case disk
    }

    let who: String
    /// Starts a server; returns nil where it is not installed or does not offer the storage.
    let start: @Sendable (Workplace, Storage) throws -> Server?
}

extension ServerKind {
    /// The kinds to measure, the baseline first.
    static func all(_ effort: Effort) -> [ServerKind] {
        [limit, storekeeper] + (effort.hasPeers ? [nginx, webdis, node] : [])
    }
}
