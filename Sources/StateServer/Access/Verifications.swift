internal import Synchronization
internal import Threads

/// Runs one verification at a time, so that unknown tokens occupy at most one processor; any thread may call it.
final class Verifications: Sendable {
    private struct State {
        var waiting = ClientTurns<@Sendable () async -> Void>()
        var isRunning = false
    }

    private let state = Mutex(State())
    /// A waiting one is a request that waits with its head and its body.
    static let waitingMax = 4096

    func run(for client: String, _ verification: @escaping @Sendable () async -> Void) -> Bool {
        let (isTaken, mustStart) = state.withLock { state in
            guard state.waiting.count < Self.waitingMax else { return (false, false) }
            state.waiting.append(verification, of: client)
            defer { state.isRunning = true }
            return (true, !state.isRunning)
        }
        if mustStart { Task { while let verification = next() { await verification() } } }
        return isTaken
    }

    private func next() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            let verification = state.waiting.next()
            if verification == nil { state.isRunning = false }
            return verification
        }
    }
}
