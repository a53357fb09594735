#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// What the present thread does for a store: where it waited for a turn, the turn that it is in would never end.
///
/// A value of the thread, not of the queue: a block that another serial queue runs by `sync` runs on the thread that
/// waits for it, and libdispatch then finds that queue only.
final class TurnMark {
    /// What runs at the moment.
    enum Phase {
        /// A creator, a middleware, a notification: what these dispatch has a turn of its own, later.
        case open
        /// A reducer: what it dispatches is refused.
        case reducing
    }

    let store: ObjectIdentifier
    private(set) var phase = Phase.open

    private init(_ store: ObjectIdentifier) { self.store = store }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "a process has at least 128 keys of thread-specific data, and all are taken")
        return key
    }()

    /// The mark of the present thread; nil outside every turn.
    static var current: TurnMark? {
        pthread_getspecific(key).map { Unmanaged<TurnMark>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Runs what belongs to a store's turn.
    static func with(_ store: ObjectIdentifier, _ body: () -> Void) {
        let mark = TurnMark(store)
        let outer = pthread_getspecific(key)
        // The thread holds no reference: the mark lives as long as this call.
        pthread_setspecific(key, Unmanaged.passUnretained(mark).toOpaque())
        withExtendedLifetime(mark, body)
        pthread_setspecific(key, outer)
    }

    /// Runs a reducer.
    static func reducing(_ body: () throws(Rejection) -> Void) throws(Rejection) {
        guard let mark = current else { return try body() }
        mark.phase = .reducing
        defer { mark.phase = .open }
        try body()
    }
}
