internal import Synchronization

/// A store without the type of its state, as servers use it.
package protocol AnyStore: AnyObject, Sendable {
    /// The published snapshot, the recent history and the watches.
    var hub: WatchHub { get }

    /// The journal that the store appends its commits to; nil for a store that keeps them in memory only.
    var journal: (any Journal)? { get }

    /// The reason for which the domain can take no action now, or nil.
    var domainFailure: DomainFailure? { get }

    /// The reason for which the store cannot follow a history that servers share any more, or nil.
    var lostHistory: LostHistory? { get }

    /// Reads again what the domain is made of.
    ///
    /// - Throws: why the domain goes on with what it has.
    func reloadDomain() throws -> DomainReload

    /// Forgets the values of views, which other functions have made, and ends the waits and streams for them.
    ///
    /// A store does so itself where it has loaded its domain again; one that shares the domain, such as a fork, has to be told.
    func forgetViews()

    /// How many transactions wait for a turn, or for its landing.
    var waitingCount: Int { get }

    /// How many transactions may wait; the store refuses more.
    var mailboxMax: Int { get }

    /// How many turns are computed and not in the journal.
    var turnsInFlightCount: Int { get }

    /// How many idempotency keys the store has after the newest turn.
    var idempotencyKeysCount: Int { get }

    /// The transaction with what its long values and the published state have in common; O(n) in these values.
    func prepared(_ transaction: Transaction) -> Transaction

    /// Puts a transaction into the mailbox without scheduling a turn; ``flush()`` schedules one for many transactions.
    func enqueue(_ pending: PendingTransaction)

    /// Schedules a turn for the enqueued transactions, if there are any.
    func flush()

    /// Runs a turn for the enqueued transactions, if there are any, and returns after it; the turn may land later.
    ///
    /// A caller must not be on the store's queue: the process would stop.
    func flushNow()

    /// Computes what a dry run would do to the published state, beside the turns of the store.
    func dryRun(_ transaction: Transaction, of client: String?) -> Outcome

    /// Runs a function on the store's queue behind the turns that wait for it.
    func afterWaitingTurns(_ body: @escaping @Sendable () -> Void)

    /// Begins to dispatch the scheduled actions; see ``Store/beginFiring(mayWrite:judge:)``.
    func beginFiring(
        mayWrite: @escaping @Sendable () -> Bool, judge: @escaping @Sendable (ScheduledAction, any Action) -> Rejection?
    )

    /// Refuses every later transaction, runs a turn for the waiting ones, and returns when every turn has landed.
    func drain()

    /// The consequences so far of the commit of a version, or nil when its cascade is complete or the commit has caused
    /// nothing.
    func cascade(of root: Version) -> CascadeReport?

    /// Drops the `completed` function of a pending transaction whose client no longer waits for the cascade.
    func stopAwaitingCascade(of root: Version, _ watcherID: UInt64)

    /// Makes a snapshot of a past state.
    ///
    /// The cost is O(n) in the size of the state.
    ///
    /// - Parameter state: UTF-8 JSON as ``AnySnapshot/whole()`` writes it.
    /// - Throws: ``JSONFault`` with the pointer at which the JSON does not fit the domain.
    func snapshot(restoring saved: SavedState, at cursor: Cursor) throws -> any AnySnapshot

    /// A state of this domain for a ``Restoration``, which shares with the present state what both have in common.
    ///
    /// The cost is O(n) in the size of both states.
    ///
    /// - Throws: ``JSONFault`` with the pointer at which the state does not fit the domain as it is now.
    func stateToRestore(like past: any AnySnapshot) throws -> any AnySnapshot

    /// Begins to make a store in memory of a part of a history, which may leave out and add actions.
    ///
    /// The cost is O(n) in the size of the state; the returned function costs what each commit costs that it computes again.
    ///
    /// - Parameters:
    ///   - hasRoom: takes room for bytes, and returns whether there is any.
    ///   - commits: returns the recorded commits after a version, in order, some at a time.
    /// - Throws: ``JSONFault`` where the state does not fit the domain, and ``Fork/NoRoom``.
    func fork(
        _ source: Fork.Source, hasRoom: @escaping @Sendable (_ bytes: Int) -> Bool,
        commits: @escaping @Sendable (_ after: Version) throws -> [Commit]
    ) throws -> Fork.Advance
}

extension Store: AnyStore {
    package var domainFailure: DomainFailure? { lostHistory?.failure ?? domain.failure() }

    package var lostHistory: LostHistory? { lost.withLock(\.self) }

    package func reloadDomain() throws -> DomainReload {
        let reload = try domain.reload?(latest.state) ?? .unchanged
        if case .taken = reload {
            domain.loads.add()
            forgetViews()
        }
        return reload
    }

    package func forgetViews() { hub.forgetViews() }

    package func snapshot(restoring saved: SavedState, at cursor: Cursor) throws -> any AnySnapshot {
        Snapshot(
            try domain.state(from: saved.state), of: domain, at: cursor, viewVersions: [], schedule: saved.schedule)
    }
}
