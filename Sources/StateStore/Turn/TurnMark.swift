internal import Dispatch

#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// Marks a thread that is inside a turn, where a wait for another turn would never end.
///
/// The mark belongs to the thread: another serial queue runs a `sync` block on the waiting thread, and libdispatch then
/// only finds that other queue.
final class TurnMark {
    // exclusivity unchecked: only the marked thread uses the variables, and a check takes as long as ten accesses.

    let queue: DispatchQueue
    /// Whether a reducer runs, whose dispatches the store refuses; it queues those of other code for a later turn.
    @exclusivity(unchecked) var isReducing = false
    /// Takes what a creator or a middleware dispatches while a transaction is computed; nil in a notification.
    @exclusivity(unchecked) var collector: TransactionContext?

    init(of queue: DispatchQueue) { self.queue = queue }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "a process has at least 128 keys of thread-specific data, and all are taken")
        return key
    }()

    static var current: TurnMark? {
        pthread_getspecific(key).map { Unmanaged<TurnMark>.fromOpaque($0).takeUnretainedValue() }
    }

    func with<Result>(_ body: () -> Result) -> Result {
        let outer = pthread_getspecific(Self.key)
        // The thread-specific value holds no reference: this call keeps the mark alive.
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(Self.key, outer) }
        return withExtendedLifetime(self, body)
    }
}
