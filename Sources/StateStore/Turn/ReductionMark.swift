internal import StateJSON
internal import Synchronization

/// Notes each transaction before a turn reduces it, and refuses those that are set aside.
///
/// A reducer or a middleware that traps ends the process. The next process finds the transaction in the page.
// unchecked: only a turn writes to the page and to `suspect`, one turn at a time; the mutex guards the rest.
package final class ReductionMark: @unchecked Sendable {
    private struct Watched {
        /// The name of each transaction that is set aside.
        var quarantined: [TransactionIdentity: String] = [:]
        /// The place of each suspect in the page.
        var suspects: [TransactionIdentity: Int] = [:]
    }

    private let page: MarkPage
    /// Keeps the memory of the page.
    private let owner: AnyObject
    private let watched: Mutex<Watched>
    private let isWatching: Atomic<Bool>
    /// The place of the suspect that is being reduced.
    private var suspect: Int?

    /// Makes a mark on a page.
    ///
    /// - Parameter owner: the object that keeps the memory of the page.
    package init(_ page: MarkPage, owner: AnyObject) {
        self.page = page
        self.owner = owner
        let suspects = Dictionary(page.suspects.map { ($0.record.identity, $0.place) }) { $1 }
        watched = Mutex(Watched(suspects: suspects))
        isWatching = Atomic(!suspects.isEmpty)
    }

    /// Replaces the transactions that are set aside; each has a name for the operator.
    package func setQuarantined(_ quarantined: [TransactionIdentity: String]) {
        watched.withLock { watched in
            watched.quarantined = quarantined
            isWatching.store(!quarantined.isEmpty || !watched.suspects.isEmpty, ordering: .relaxed)
        }
    }

    /// Notes a transaction before it is reduced.
    ///
    /// - Returns: the rejection of a transaction that is set aside, which must not be reduced.
    func begin(_ transaction: Transaction) -> Rejection? {
        acquitSuspect()
        guard let identity = TransactionIdentity(transaction) else {
            page.end()
            return nil
        }
        if isWatching.load(ordering: .relaxed), let rejection = look(identity) {
            page.end()
            return rejection
        }
        let name = transaction.idempotency?.key ?? transaction.items.first?.id ?? ""
        page.begin(identity, type: transaction.items.first?.type ?? "", name: name)
        return nil
    }

    /// Notes that no transaction is being reduced.
    func end() {
        page.end()
        acquitSuspect()
    }

    private func look(_ identity: TransactionIdentity) -> Rejection? {
        watched.withLock { watched in
            suspect = watched.suspects[identity]
            return watched.quarantined[identity].map { name in
                Rejection(
                    "action-quarantined",
                    "the server has ended each time it reduced this action, and has set it aside as \(name); nothing was committed, and a retry is refused until the operator lets it pass",
                    kind: .invalid)
            }
        }
    }

    /// Drops the suspect that was reduced without harm.
    private func acquitSuspect() {
        guard let place = suspect else { return }
        suspect = nil
        page.removeSuspect(at: place)
        watched.withLock { watched in
            watched.suspects = watched.suspects.filter { $0.value != place }
            isWatching.store(!watched.quarantined.isEmpty || !watched.suspects.isEmpty, ordering: .relaxed)
        }
    }
}
