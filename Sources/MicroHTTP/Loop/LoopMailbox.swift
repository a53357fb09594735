import CMicroHTTPD
import Glibc
import HTTPMessages
import Synchronization

/// The mailbox of a loop: what other threads have for the loop, in order, and the descriptor that wakes the loop.
///
/// Any thread may call `put`; only the loop thread calls the other methods.
final class LoopMailbox: Sendable, AnswerSink {
    enum Item: Sendable {
        case deliver(Transmission)
        case stopAccepting
        indirect case stop(grace: Duration, done: @Sendable () -> Void)

        fileprivate var isChunk: Bool { if case .deliver(.chunk) = self { true } else { false } }
    }

    private struct State {
        var items: [Item] = []
        var hasChunks = false
        /// Whether the loop waits, or is about to, and no `put` has woken it yet.
        var isLoopWaiting = false
        var isClosed = false
    }

    private let state = Mutex(State())
    /// The eventfd that wakes the loop, which never reads it: the poller watches it edge-triggered, so that each write
    /// is an event.
    let wakeUp: Int32
    /// The thread of the loop; 0 until it runs.
    private let thread = Atomic<UInt>(0)

    init() throws(ServerError) {
        wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard wakeUp >= 0 else { throw .unavailable(reason: "eventfd: \(ServerError.words(for: errno))") }
    }

    deinit { Glibc.close(wakeUp) }

    func noteThread() { thread.store(UInt(pthread_self()), ordering: .relaxed) }

    /// Adds an item and wakes the loop if it waits; returns false, without adding, if the loop has ended.
    @discardableResult
    func put(_ item: Item) -> Bool {
        let (isTaken, mustWake) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.items.append(item)
            if item.isChunk { state.hasChunks = true }
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

    /// Moves all items into the caller's empty array, whose storage takes the next items.
    func take(into items: inout [Item]) {
        state.withLock { state in
            state.isLoopWaiting = false
            guard !state.items.isEmpty else { return }
            swap(&state.items, &items)
            state.hasChunks = false
        }
    }

    var hasChunks: Bool { state.withLock { $0.hasChunks } }

    /// Notes that the loop is about to wait; returns false if it has items to take first.
    func prepareToWait() -> Bool {
        state.withLock { state in
            state.isLoopWaiting = state.items.isEmpty
            return state.isLoopWaiting
        }
    }

    /// Closes the mailbox and returns the items that are left; every later `put` returns false.
    func close() -> [Item] {
        state.withLock { state in
            state.isClosed = true
            defer { state.items = [] }
            return state.items
        }
    }
}
