internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

/// Takes back what subjects without a token have scheduled themselves: none of it could be dispatched, and it takes room.
final class OrphanedActions: Sendable {
    private let isDue = Atomic(true)
    private let store: UntypedStore
    private let authenticator: Authenticator
    private let schedule: Schedule

    init(_ store: UntypedStore, _ authenticator: Authenticator, _ schedule: Schedule) {
        (self.store, self.authenticator, self.schedule) = (store, authenticator, schedule)
    }

    /// Takes back the first thousand in one commit, and then the others; any thread may call it.
    func remove(tokensHaveChanged: Bool, mayWrite: @escaping @Sendable () -> Bool) {
        if tokensHaveChanged { isDue.store(true, ordering: .relaxed) }
        guard isDue.load(ordering: .relaxed), mayWrite(), let known = authenticator.subjects else {
            return
        }
        isDue.store(false, ordering: .relaxed)
        var orphans: [Transaction.Item] = []
        store.hub.latest.schedule.visit { action in
            guard orphans.count < 1000, !action.isOfState, let by = action.name.by,
                !known.contains(ExactText(by)), !Access.isOfHook(by), authenticator.needsToken(action.credential)
            else { return }
            orphans.append(.init(StoreUnschedule(name: action.name.text, by: by)))
        }
        guard !orphans.isEmpty else { return }
        store.enqueue(
            PendingTransaction(Transaction(orphans, form: .batch)) { [self] outcome in
                isDue.store(true, ordering: .relaxed)
                // One of them may have been dispatched meanwhile; the next look at the tokens tries again.
                guard case .committed = outcome else { return }
                schedule.after(.zero) { self.remove(tokensHaveChanged: false, mayWrite: mayWrite) }
            })
        store.flush()
    }
}
