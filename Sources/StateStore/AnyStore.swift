/// A store whatever the type of its state, as servers use it.
package protocol AnyStore: AnyObject, Sendable {
    /// The published present, the recent history and the watches.
    var hub: WatchHub { get }

    /// Where the commits go; nil for a store that keeps them in memory only.
    var journal: (any Journal)? { get }

    /// How many transactions wait for a turn.
    var waitingCount: Int { get }

    /// Hands a transaction over without asking for a turn: ``flush()`` does, once for many.
    func enqueue(_ pending: PendingTransaction)

    /// Has a turn run for what was enqueued, if anything was.
    func flush()

    /// Runs a turn for what was enqueued, if anything was, and returns after it.
    ///
    /// It must not be called on the store's queue.
    func flushNow()

    /// Refuses what comes from now on, and finishes what waits.
    func drain()

    /// What the commit of a version has caused so far; nil when its cascade is complete, or it has caused nothing.
    func cascade(of root: Version) -> CascadeReport?

    /// A snapshot of a past state.
    ///
    /// - Parameter state: UTF-8 JSON as ``AnySnapshot/whole()`` writes it.
    /// - Throws: ``JSONFault`` with the place where JSON and domain do not fit.
    func snapshot(restoring state: [UInt8], at cursor: Cursor) throws -> any AnySnapshot
}

extension Store: AnyStore {
    package func snapshot(restoring state: [UInt8], at cursor: Cursor) throws -> any AnySnapshot {
        Snapshot(try model.state(from: state), of: model, at: cursor, viewVersions: [])
    }
}
