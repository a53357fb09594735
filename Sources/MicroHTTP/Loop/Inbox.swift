import CMicroHTTPD
import Glibc
import HTTPMessages
import Synchronization

/// What other threads have for the loop, in order, and the bell that wakes it.
///
/// Any thread puts; only the loop takes and sleeps.
final class Inbox: Sendable, AnswerSink {
    /// One thing for the loop to do.
    enum Item: Sendable {
        case deliver(Transmission)
        case stopAccepting
        case stop(grace: Duration, done: @Sendable () -> Void)
    }

    private struct State {
        var items: [Item] = []
        /// True from the moment the loop has found nothing to do until somebody rings.
        var loopSleeps = false
        /// True once the loop has ended: nobody will take anything any more.
        var isClosed = false
    }

    private let state = Mutex(State())
    /// The eventfd that wakes the loop.
    ///
    /// It is never read: registered edge-triggered, each write is an event of its own.
    let bell: Int32

    init() throws(ServerError) {
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0 else { throw .unavailable(reason: "eventfd: \(ServerError.words(for: errno))") }
    }

    deinit { Glibc.close(bell) }

    /// Adds an item and wakes the loop if it sleeps; false if the loop has ended.
    @discardableResult
    func put(_ item: Item) -> Bool {
        let (isTaken, mustRing) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.items.append(item)
            defer { state.loopSleeps = false }
            return (true, state.loopSleeps)
        }
        if mustRing {
            // It fails only when the counter is full at 2^64 - 2, and then the bell has rung.
            _ = eventfd_write(bell, 1)
        }
        return isTaken
    }

    func put(_ transmission: Transmission) { put(.deliver(transmission)) }

    /// Takes everything there is, leaving the caller's emptied array as the next store.
    func take(into items: inout [Item]) {
        state.withLock { state in
            state.loopSleeps = false
            guard !state.items.isEmpty else { return }
            swap(&state.items, &items)
        }
    }

    /// Announces that the loop is going to wait; false if there is something to take first.
    func prepareToSleep() -> Bool {
        state.withLock { state in
            state.loopSleeps = state.items.isEmpty
            return state.loopSleeps
        }
    }

    /// Refuses everything from now on and returns what was still there.
    func close() -> [Item] {
        state.withLock { state in
            state.isClosed = true
            defer { state.items = [] }
            return state.items
        }
    }
}
