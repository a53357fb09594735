internal import StateStore

/// A store as HTTP sees it: actions in, outcomes out, whatever the type of the state.
struct StoreDoor: Sendable {
    /// Runs a turn and returns its outcome.
    let submitNow: @Sendable (Submission) -> Outcome
    /// Hands a submission over; `flush` has the turn run, `flushNow` runs it.
    let enqueue: @Sendable (Envelope) -> Void
    let flush: @Sendable () -> Void
    let flushNow: @Sendable () -> Void
    /// Refuses what comes from now on and finishes what is there.
    let drain: @Sendable () -> Void
    /// A snapshot of a past state, from its JSON.
    let restore: @Sendable (_ state: [UInt8], Cursor) throws -> Snapshot
    let waitingCount: @Sendable () -> Int
    /// What the commit of a version has caused so far; nil when nothing of it is under way.
    let cascade: @Sendable (Version) -> CascadeReport?

    init<State>(_ store: Store<State>, model: Model<State>) {
        submitNow = { store.submitNow($0) }
        enqueue = { store.enqueue($0) }
        flush = { store.flush() }
        flushNow = { store.flushNow() }
        drain = { store.drain() }
        restore = { Snapshot(try model.state(from: $0), of: model, at: $1) }
        waitingCount = { store.waitingCount }
        cascade = { store.cascade(of: $0) }
    }
}
