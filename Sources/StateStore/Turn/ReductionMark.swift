internal import StateJSON
internal import Synchronization

/// A mark that records each transaction and each view before it is computed, and refuses what is set aside.
///
/// A reducer, a middleware or a view that traps ends the process. The next process finds in the page what was computed
/// then. The turns of a store, its dry runs, each fork and each view have a mark of their own, on one page and with one
/// list.
// unchecked: only one turn, dry run, fork or view at a time uses a mark; a mutex guards what the marks of a page share.
package final class ReductionMark: @unchecked Sendable {
    package struct Refused: Sendable {
        package var name: String
        /// The version of the state with which the view is refused, until what it reads changes.
        package var version: Version

        package init(name: String, version: Version = 0) { (self.name, self.version) = (name, version) }
    }

    /// The actions and views that are set aside, and with nil those that are suspected.
    private typealias Watched = [TransactionIdentity: Refused?]

    private final class Watch: Sendable {
        let watched = Mutex<Watched>([:])
        let isNeeded = Atomic(false)
        let slots = Atomic<UInt64>(0)
        let released: @Sendable (TransactionIdentity) -> Void

        init(released: @escaping @Sendable (TransactionIdentity) -> Void) { self.released = released }

        func change<Value: Sendable>(_ body: (inout Watched) -> Value) -> Value {
            watched.withLock { watched in
                defer { isNeeded.store(!watched.isEmpty, ordering: .relaxed) }
                return body(&watched)
            }
        }

        func takeSlot() -> Int? {
            var used = slots.load(ordering: .relaxed)
            while true {
                let slot = (~used).trailingZeroBitCount
                guard slot < MarkPage.slotsMax else { return nil }
                let (isTaken, current) = slots.weakCompareExchange(
                    expected: used, desired: used | 1 << UInt64(slot), ordering: .relaxed)
                if isTaken { return slot }
                used = current
            }
        }

        func giveBack(_ slot: Int) { slots.bitwiseAnd(~(1 << UInt64(slot)), ordering: .relaxed) }
    }

    private let page: MarkPage
    private let owner: AnyObject
    private let watch: Watch
    /// The part of the page that is in use between a beginning and the end behind it.
    private var slot: Int?
    private var tried: TransactionIdentity?

    /// The first mark of a page, whose memory `owner` keeps; `released` is called on any thread and must not wait.
    package init(
        _ page: MarkPage, owner: AnyObject, released: @escaping @Sendable (TransactionIdentity) -> Void = { _ in }
    ) {
        self.page = page
        self.owner = owner
        watch = Watch(released: released)
    }

    private init(beside mark: ReductionMark) { (page, owner, watch) = (mark.page, mark.owner, mark.watch) }

    func another() -> ReductionMark { ReductionMark(beside: self) }

    package func watch(_ listed: [TransactionIdentity: Refused?]) { watch.change { $0 = listed } }

    /// The reason why the record is set aside, or nil; `changed` is nil for a past state, and for a transaction.
    func begin(_ record: MarkPage.Record, changed: Version? = nil) -> Refused? {
        if tried != nil { releaseTried() }
        if watch.isNeeded.load(ordering: .relaxed), let refused = refusal(record.identity, changed: changed) {
            end()
            return refused
        }
        // Where more threads compute than the page has room for, the next ones are not recorded.
        guard let slot = slot ?? watch.takeSlot() else { return nil }
        self.slot = slot
        page.begin(record, in: slot)
        return nil
    }

    /// Computes a view, which the page names meanwhile without a system call.
    ///
    /// A view that is set aside is computed again once what it reads has changed; `changed` is nil for a past state.
    func viewing<Value>(
        _ name: String, _ arguments: ViewArguments, at version: Version, changed: Version?, _ body: () throws -> Value
    ) throws -> Value {
        let mark = another()
        let identity = TransactionIdentity(view: name, arguments)
        let record = MarkPage.Record(identity: identity, type: "view", name: name, version: version)
        if let refused = mark.begin(record, changed: changed) {
            throw ViewFault(
                "the server has ended each time it computed the view, and has set it aside as \(refused.name), until what it reads changes or the operator lets it pass"
            )
        }
        defer { mark.end() }
        return try body()
    }

    func end() {
        if let slot {
            page.end(slot)
            watch.giveBack(slot)
        }
        slot = nil
        if tried != nil { releaseTried() }
    }

    private func refusal(_ identity: TransactionIdentity, changed: Version?) -> Refused? {
        watch.watched.withLock { watched in
            guard let listed = watched[identity] else { return nil }
            if let refused = listed, changed.map({ $0 <= refused.version }) ?? true { return refused }
            tried = identity
            return nil
        }
    }

    private func releaseTried() {
        guard let identity = tried.take() else { return }
        if watch.change({ $0.removeValue(forKey: identity) != nil }) { watch.released(identity) }
    }
}

extension MarkPage.Record {
    package init?(_ transaction: Transaction) {
        guard let identity = TransactionIdentity(transaction) else { return nil }
        self.init(identity: identity, type: transaction.firstType, name: transaction.identifyingName)
    }
}

extension Transaction {
    /// The type of the first action; empty where only the turn knows it.
    package var firstType: String { items.isEmpty ? "" : type(at: 0) ?? "" }

    /// The idempotency key or the first ID; empty where the content identifies the transaction.
    fileprivate var identifyingName: String { idempotency?.key.recorded ?? firstID ?? "" }
}

extension Rejection {
    private static let quarantineCode = "action-quarantined"

    package var isQuarantine: Bool { code == Self.quarantineCode }

    package static func quarantined(_ name: String) -> Rejection {
        Rejection(
            quarantineCode,
            "the server has ended each time it reduced this action, and has set it aside as \(name); nothing was committed, and a retry is refused until the operator lets it pass",
            kind: .invalid)
    }
}
