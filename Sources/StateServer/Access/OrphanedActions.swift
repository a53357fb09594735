internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

/// Takes back what subjects without a token have scheduled themselves: none of it could be dispatched, and it takes room.
final class OrphanedActions: Sendable {
    /// Whether there may be some: after a start, and after tokens have gone.
    private let isDue = Atomic(true)
    private let store: any AnyStore
    private let schedule: Schedule

    init(_ store: any AnyStore, _ schedule: Schedule) { (self.store, self.schedule) = (store, schedule) }

    /// Takes back the first thousand in one commit, and then the others; any thread may call it.
    ///
    /// - Parameter subjects: those that have tokens; nil where others act without one, or this process does not write.
    func remove(tokensHaveChanged: Bool, _ subjects: @escaping @Sendable () -> Set<ExactText>?) {
        if tokensHaveChanged { isDue.store(true, ordering: .relaxed) }
        guard isDue.load(ordering: .relaxed), let known = subjects() else { return }
        isDue.store(false, ordering: .relaxed)
        var orphans: [Transaction.Item] = []
        store.hub.latest.schedule.visit { action in
            guard orphans.count < 1000, !action.isOfState, let by = action.name.by,
                !known.contains(ExactText(by)), !Access.isOfHook(by)
            else { return }
            orphans.append(.init(StoreUnschedule(name: action.name.text, by: by)))
        }
        guard !orphans.isEmpty else { return }
        store.enqueue(
            PendingTransaction(Transaction(orphans, form: .batch)) { [self] outcome in
                isDue.store(true, ordering: .relaxed)
                // One of them may have been dispatched meanwhile; the next look at the tokens tries again.
                guard case .committed = outcome else { return }
                schedule.after(.zero) { self.remove(tokensHaveChanged: false, subjects) }
            })
        store.flush()
    }
}
