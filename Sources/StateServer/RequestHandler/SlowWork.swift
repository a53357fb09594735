internal import Dispatch
internal import MicroHTTP
internal import Synchronization
internal import Threads

/// The slow work of requests, on a bounded number of threads, one client after the other.
///
/// A client that asks for much waits for itself: each free thread takes the next work of the client whose last one is the
/// longest ago. Where processors are few, the threads of the loops and of the turns go first. Any thread may call any method.
final class SlowWork: Sendable {
    /// The kind of the work; each kind has threads of its own, so that no kind waits for another.
    enum Kind: CaseIterable {
        /// Encodes or indents a large value, or reads the journal.
        case read
        case past
        case dryRun
        /// Runs the actions of a history again, for a fork.
        case fork
        /// Parses a long body, or writes the answers to many lines.
        case parse
    }

    private struct State {
        var waiting = ClientTurns<@Sendable () -> Void>()
        var runningCount = 0
    }

    private let state = Mutex(State())
    private let width: Int
    private static let niceness: Int32 = 10

    init(width: Int) { self.width = width }

    /// Runs work behind the earlier work of the client, and in turn with that of other clients.
    func run(for client: String, _ work: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.waiting.append(work, of: client)
            guard state.runningCount < width else { return false }
            state.runningCount += 1
            return true
        }
        guard mustStart else { return }
        let works = { @Sendable [self] in while let work = next() { work() } }
        do {
            try SystemThread(niceness: Self.niceness, works).detach()
        } catch {
            // The system has no more threads; Dispatch has some.
            DispatchQueue.global(qos: .utility).async(execute: works)
        }
    }

    /// The next work; without work, one thread less is running.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            let work = state.waiting.next()
            if work == nil { state.runningCount -= 1 }
            return work
        }
    }
}
