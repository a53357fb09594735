internal import Dispatch
internal import MicroHTTP
internal import Synchronization

/// The slow work of requests, on a bounded number of threads, one client after the other.
///
/// A client that asks for much waits for itself: each free thread takes the next work of the client whose last one is the
/// longest ago. Any thread may call any method.
final class SlowWork: Sendable {
    /// What the work does; each kind has threads of its own, so that no kind waits for another.
    enum Kind: CaseIterable {
        /// It encodes or indents a large value, or reads the journal.
        case read
        /// It makes the state of a past version.
        case past
        /// It computes dry runs.
        case dryRun
        /// It runs the actions of a history again, for a fork.
        case fork
        /// It parses a long body, or writes the answers to many lines.
        case parse
    }

    private struct State {
        var waiting = ClientTurns<@Sendable () -> Void>()
        var runningCount = 0
    }

    private let state = Mutex(State())
    private let queue: DispatchQueue
    private let width: Int

    /// - Parameter width: how many works may run at once.
    init(label: String, width: Int) {
        queue = DispatchQueue(label: label, qos: .utility, attributes: .concurrent)
        self.width = width
    }

    /// Runs work behind the earlier work of the client, and in turn with that of other clients.
    func run(for client: String, _ work: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.waiting.append(work, of: client)
            guard state.runningCount < width else { return false }
            state.runningCount += 1
            return true
        }
        if mustStart { queue.async { [self] in while let work = next() { work() } } }
    }

    /// The next work; nil where there is none, and then one thread less is running.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            let work = state.waiting.next()
            if work == nil { state.runningCount -= 1 }
            return work
        }
    }
}
