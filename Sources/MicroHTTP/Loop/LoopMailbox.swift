import CMicroHTTPD
import Glibc
import HTTPMessages
import Synchronization

/// Any thread may call `put`; only the loop thread calls the other methods.
final class LoopMailbox: Sendable, AnswerSink {
    enum Item: Sendable {
        case deliver(Transmission)
        case stopAccepting
        indirect case stop(grace: Duration, done: @Sendable () -> Void)
    }

    private struct State {
        var items: [Item] = []
        var hasChunks = false
        /// Stays true from just before the wait until the first `put`, which alone wakes the loop.
        var isLoopWaiting = false
        var isClosed = false

        mutating func take(into taken: inout [Item]) {
            isLoopWaiting = false
            guard !items.isEmpty else { return }
            swap(&items, &taken)
            hasChunks = false
        }

        mutating func prepareToWait() -> Bool {
            isLoopWaiting = items.isEmpty
            return isLoopWaiting
        }
    }

    private let state = Mutex(State())
    /// The loop never reads it: the poller watches it edge-triggered, so that each write is an event.
    let wakeUp: Int32
    private let thread = Atomic<UInt>(0)

    init() throws(ServerError) {
        wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard wakeUp >= 0 else { throw .unavailable(reason: "eventfd: \(ServerError.words(for: errno))") }
    }

    deinit { Glibc.close(wakeUp) }

    func noteThread() { thread.store(UInt(pthread_self()), ordering: .relaxed) }

    /// Returns false, without adding, if the loop has ended.
    @discardableResult
    func put(_ item: Item) -> Bool {
        let (isTaken, mustWake) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.items.append(item)
            if case .deliver(.chunk) = item { state.hasChunks = true }
            defer { state.isLoopWaiting = false }
            return (true, state.isLoopWaiting)
        }
        if mustWake {
            // The write fails only when the counter is at 2^64 - 2; the loop then has an event already.
            _ = eventfd_write(wakeUp, 1)
        }
        return isTaken
    }

    func put(_ transmission: Transmission) {
        // The loop looks at a held exchange again before it waits.
        if thread.load(ordering: .relaxed) == UInt(pthread_self()), case .single(let exchange) = transmission,
            exchange.isHeld
        {
            return
        }
        put(.deliver(transmission))
    }

    /// The storage of the caller's empty array takes the next items.
    func take(into items: inout [Item]) { state.withLock { $0.take(into: &items) } }

    var hasChunks: Bool { state.withLock { $0.hasChunks } }

    /// Returns false if there are items to take first.
    func prepareToWait() -> Bool { state.withLock { $0.prepareToWait() } }

    /// Every later `put` returns false.
    func close() -> [Item] {
        state.withLock { state in
            state.isClosed = true
            defer { state.items = [] }
            return state.items
        }
    }
}
