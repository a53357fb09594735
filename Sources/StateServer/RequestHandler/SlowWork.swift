internal import Dispatch
internal import MicroHTTP
internal import StateStore
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
    private static let niceness: Int32 = 5

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

/// The slow reads that are under way, with their limits in all and for each client.
///
/// Any thread may call any method.
final class SlowReads: Sendable {
    private struct State {
        var count = 0
        var byClient: [String: Int] = [:]
        var abandonable: Set<UInt64> = []
    }

    private let state = Mutex(State())
    private let countMax: Int
    private let countPerClientMax: Int

    init(countMax: Int = 1024, countPerClientMax: Int = 256) {
        self.countMax = countMax
        self.countPerClientMax = countPerClientMax
    }

    /// Counts a read; returns why it may not begin.
    ///
    /// - Parameter isAbandonable: whether the read ends when its client hangs up.
    func begin(_ exchange: Exchange, isAbandonable: Bool) -> WatchRefusal? {
        state.withLock { state in
            let count = state.byClient[exchange.client] ?? 0
            guard state.count < countMax else { return .all }
            guard count < countPerClientMax else { return .client }
            state.count += 1
            state.byClient[exchange.client] = count + 1
            if isAbandonable { state.abandonable.insert(exchange.id) }
            return nil
        }
    }

    func end(_ exchange: Exchange) {
        state.withLock { state in
            state.count -= 1
            let left = (state.byClient[exchange.client] ?? 0) - 1
            state.byClient[exchange.client] = left > 0 ? left : nil
            state.abandonable.remove(exchange.id)
        }
    }

    func isAbandonable(_ id: UInt64) -> Bool { state.withLock { $0.abandonable.contains(id) } }
}
