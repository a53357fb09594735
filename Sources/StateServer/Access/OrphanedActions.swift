internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

extension RequestHandler {
    /// Takes back what subjects without a token have scheduled themselves: none of it could be dispatched, and it takes room.
    ///
    /// The first thousand go in one commit, and then the others; any thread may call it.
    func removeOrphans(tokensHaveChanged: Bool) {
        if tokensHaveChanged { areOrphansDue.store(true, ordering: .relaxed) }
        guard areOrphansDue.load(ordering: .relaxed), cluster?.mayDispatchScheduled ?? true,
            let known = authenticator.subjects
        else { return }
        areOrphansDue.store(false, ordering: .relaxed)
        var orphans: [Transaction.Item] = []
        hub.latest.schedule.visit { action in
            guard orphans.count < 1000, !action.isOfState, let by = action.name.by,
                !known.contains(ExactText(by)), !Access.isOfHook(by), authenticator.needsToken(action.credential)
            else { return }
            orphans.append(.init(StoreUnschedule(name: action.name.text, by: by)))
        }
        guard !orphans.isEmpty else { return }
        store.enqueue(
            PendingTransaction(Transaction(orphans, form: .batch)) { [self] outcome in
                areOrphansDue.store(true, ordering: .relaxed)
                // One of them may have been dispatched meanwhile; the next look at the tokens tries again.
                guard case .committed = outcome else { return }
                platform.after(.zero) { self.removeOrphans(tokensHaveChanged: false) }
            })
        store.flush()
    }
}
