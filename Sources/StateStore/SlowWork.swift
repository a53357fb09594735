internal import Dispatch
internal import Synchronization
internal import Threads

/// The slow work of clients beside the loops and the turns, on a bounded number of threads, in turn by client.
///
/// A client that asks for much waits for itself: it has half of the threads at most, each free thread takes work of the client
/// whose last one is the longest ago, and of one client the small works first. Where processors are few, the threads of the
/// loops and of the turns go before. Any thread may call any method.
package final class SlowWork: Sendable {
    private struct State {
        var waiting = ClientTurns<@Sendable () -> Void>()
        var running: [String: Int] = [:]
        var threadsCount = 0

        mutating func claimThread(_ width: Int) -> Bool {
            guard threadsCount < 2 * width, waiting.hasNext(where: { running[$0] ?? 0 < width }) else { return false }
            threadsCount += 1
            return true
        }
    }

    private let state = Mutex(State())
    private let width: Int
    private static let niceness: Int32 = 5
    /// The time of work of which nobody knows how long it takes.
    private static let unknownTime = Duration.milliseconds(100)

    /// - Parameter width: how many threads one client may have; all together have twice as many.
    package init(width: Int) { self.width = width }

    /// Runs work in turn with that of other clients.
    ///
    /// - Parameters:
    ///   - time: how long it has taken before, or nil; for each millisecond, one smaller work that comes later may go before it.
    ///   - isFirst: whether the client has just committed what the work shows, and so has the next turn, every second one at most.
    ///   - work: nil where it waits already.
    package func run(
        for client: String, taking time: Duration? = nil, isFirst: Bool = false, _ work: (@Sendable () -> Void)?
    ) {
        let mustStart = state.withLock { state in
            let size = Int((time ?? Self.unknownTime) / .milliseconds(1))
            if let work { state.waiting.append(work, of: client, size: size) }
            if isFirst { state.waiting.favour(client) }
            return state.claimThread(width)
        }
        if mustStart { startThread() }
    }

    private func startThread() {
        let works = { @Sendable [self] in
            var last: String?
            while let (client, work) = next(after: last) {
                work()
                last = client
            }
        }
        do {
            try SystemThread(niceness: Self.niceness, works).detach()
        } catch {
            // The system has no more threads; Dispatch has some.
            DispatchQueue.global(qos: .utility).async(execute: works)
        }
    }

    /// The next work, after the end of one of a client; without work, one thread less is running.
    private func next(after last: String?) -> (client: String, work: @Sendable () -> Void)? {
        let (next, mustStart) = state.withLock { state in
            if let last { state.running.subtract(1, of: last) }
            let running = state.running
            guard let next = state.waiting.next(where: { running[$0] ?? 0 < width }) else {
                state.threadsCount -= 1
                return (nil as (client: String, work: @Sendable () -> Void)?, false)
            }
            state.running[next.client, default: 0] += 1
            return (next, state.claimThread(width))
        }
        if mustStart { startThread() }
        return next
    }
}
