internal import StateJSON
internal import Synchronization

/// Notes each transaction before a turn or a dry run reduces it, and refuses those that are set aside.
///
/// A reducer or a middleware that traps ends the process. The next process finds the transaction in the page. The turns and
/// the dry runs beside them have a mark each, with one list of what is set aside.
// unchecked: only one turn, or one dry run, at a time writes to its part of the page and to `suspectedPlace`; a mutex guards the
// rest.
package final class ReductionMark: @unchecked Sendable {
    private struct Watched {
        /// The name of each transaction that is set aside.
        var quarantined: [TransactionIdentity: String] = [:]
        /// The place of each suspected transaction in the page.
        var suspected: [TransactionIdentity: Int] = [:]
    }

    /// What both marks watch for.
    private final class Watch: Sendable {
        let watched: Mutex<Watched>
        let isNeeded: Atomic<Bool>

        init(_ watched: Watched) {
            isNeeded = Atomic(!watched.suspected.isEmpty)
            self.watched = Mutex(watched)
        }

        func change(_ body: (inout Watched) -> Void) {
            watched.withLock { watched in
                body(&watched)
                isNeeded.store(!watched.quarantined.isEmpty || !watched.suspected.isEmpty, ordering: .relaxed)
            }
        }
    }

    private let page: MarkPage
    /// Keeps the memory of the page.
    private let owner: AnyObject
    private let work: MarkPage.Work
    private let watch: Watch
    /// The place of the suspected transaction that is being reduced.
    private var suspectedPlace: Int?

    /// Makes a mark of turns on a page.
    ///
    /// - Parameter owner: the object that keeps the memory of the page.
    package init(_ page: MarkPage, owner: AnyObject) {
        self.page = page
        self.owner = owner
        let suspected = Dictionary(page.suspected.map { ($0.record.identity, $0.place) }) { $1 }
        work = .turn
        watch = Watch(Watched(suspected: suspected))
    }

    private init(dryRunsBeside mark: ReductionMark) {
        page = mark.page
        owner = mark.owner
        work = .dryRun
        watch = mark.watch
    }

    /// Makes the mark of the dry runs, of which there must be one at a time.
    func forDryRuns() -> ReductionMark { ReductionMark(dryRunsBeside: self) }

    /// Replaces the transactions that are set aside; each has a name for the operator.
    package func setQuarantined(_ quarantined: [TransactionIdentity: String]) {
        watch.change { $0.quarantined = quarantined }
    }

    /// Notes a transaction before it is reduced.
    ///
    /// - Returns: the rejection of a transaction that is set aside, which must not be reduced.
    func begin(_ transaction: Transaction) -> Rejection? {
        releaseSuspected()
        guard let identity = TransactionIdentity(transaction) else {
            page.end(work)
            return nil
        }
        if watch.isNeeded.load(ordering: .relaxed), let rejection = look(identity) {
            page.end(work)
            return rejection
        }
        let name = transaction.idempotency?.key.recorded ?? transaction.firstID ?? ""
        page.begin(identity, type: transaction.items.isEmpty ? "" : transaction.type(at: 0) ?? "", name: name, in: work)
        return nil
    }

    /// Notes that no transaction is being reduced.
    func end() {
        page.end(work)
        releaseSuspected()
    }

    private func look(_ identity: TransactionIdentity) -> Rejection? {
        watch.watched.withLock { watched in
            suspectedPlace = watched.suspected[identity]
            return watched.quarantined[identity].map { name in
                Rejection(
                    "action-quarantined",
                    "the server has ended each time it reduced this action, and has set it aside as \(name); nothing was committed, and a retry is refused until the operator lets it pass",
                    kind: .invalid)
            }
        }
    }

    /// Drops the suspected transaction that was reduced without harm.
    private func releaseSuspected() {
        guard let place = suspectedPlace else { return }
        suspectedPlace = nil
        page.removeSuspected(at: place)
        watch.change { watched in watched.suspected = watched.suspected.filter { $0.value != place } }
    }
}
