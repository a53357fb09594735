package import StateJSON

/// Actions that apply together or not at all; an object, because a turn and its landing hand it on often.
package final class Transaction: Sendable {
    package enum Content: Sendable {
        case action(any Action)
        /// A function from the state in the turn to an action or nil; its argument has the store's type of state.
        case creator(@Sendable (StateBox) throws(Rejection) -> (any Action)?)
        case restore(Restoration)
    }

    package struct Item: Sendable {
        package var content: Content
        package var entry: ActionEntry?
        package var id: String?
        /// UTF-8 JSON object that the store records and does not interpret.
        package var meta: [UInt8]?
        /// The client's action without white space and what is not recorded; nil for an action of the process.
        package var sent: [UInt8]?

        package init(
            _ action: any Action, of entry: ActionEntry? = nil, id: String? = nil, meta: [UInt8]? = nil,
            sent: [UInt8]? = nil
        ) {
            content = .action(action)
            self.entry = entry
            self.id = id
            self.meta = meta
            self.sent = sent
        }

        package init(
            content: Content, id: String? = nil, meta: [UInt8]? = nil, sent: [UInt8]? = nil
        ) {
            (self.content, self.id, self.meta, self.sent) = (content, id, meta, sent)
        }
    }

    package struct Expectation: Sendable {
        package enum Wanted: Sendable {
            case value(JSONValue), anyValue, nothing
            case tags(TagSet)
        }

        package var pointer: JSONPointer
        package var wanted: Wanted
        /// Whether the client may not see what is there: then the expectation does not hold.
        package var isHidden: Bool
        /// Whether a long value of a published state is the ``wanted`` one, which the turn then need not find out again.
        var known: (tree: JSONTree, holds: Bool)?

        package init(_ pointer: JSONPointer, _ wanted: Wanted, isHidden: Bool = false) {
            self.pointer = pointer
            self.wanted = wanted
            self.isHidden = isHidden
        }
    }

    package enum Form: Sendable { case single, batch }
    package enum Purpose: Sendable { case commit, dryRun }

    package final class Origin: Sendable {
        let causation: Causation
        /// The scheduled action that the transaction is of, which its commit removes from the schedule; nil for none.
        let due: (action: ScheduledAction, batch: FiringBatch)?

        init(_ causation: Causation, due: (ScheduledAction, FiringBatch)? = nil) {
            (self.causation, self.due) = (causation, due)
        }
    }

    package let items: [Item]
    package let form: Form
    package let purpose: Purpose
    package let expectations: [Expectation]
    package let tagGuard: Expectation?
    package let idempotency: (key: IdempotencyKey, fingerprint: String)?
    /// The hash of the request's body or line; nil for a transaction of the process, and where a key or an ID identifies it.
    package let contentHash: ContentHash?
    package let subject: String?
    package let trace: String?
    package let wantsRepresentation: Bool
    /// Nil for a transaction of a client, and of the process.
    let origin: Origin?
    package let sentBytesCount: Int
    let hasClientIDs: Bool

    var causation: Causation? { origin?.causation }
    var due: ScheduledAction? { origin?.due?.action }

    /// The type of an action; nil for a creator, whose action is not known before the turn.
    package func type(at index: Int) -> String? {
        if let entry = items[index].entry { return entry.type }
        // A property of the item would copy the item.
        return switch items[index].content {
        case .action(let action): action.typeName
        case .creator: nil
        case .restore: Commit.restoreType
        }
    }

    var isLong: Bool { sentBytesCount > 65_536 }

    /// Whether the actions have something that the state may have already: see ``UntypedStore/prepared(_:)``.
    package var isPreparable: Bool { isLong || !expectations.isEmpty }

    package var isOfEntries: Bool { !items.isEmpty && items[0].entry != nil }

    var isConditional: Bool { tagGuard != nil || !expectations.isEmpty }

    /// The ID that the client gave to the first action; a subscript reads one field, where `first` copies the item.
    package var firstID: String? { items.isEmpty ? nil : items[0].id }

    var clientIDs: [String] {
        if items.count == 1 { return items[0].id.map { [$0] } ?? [] }
        return items.compactMap(\.id)
    }

    package init(
        _ items: [Item], form: Form = .single, purpose: Purpose = .commit, expectations: [Expectation] = [],
        tagGuard: Expectation? = nil, idempotency: (key: IdempotencyKey, fingerprint: String)? = nil,
        contentHash: ContentHash? = nil, subject: String? = nil, trace: String? = nil,
        wantsRepresentation: Bool = false, origin: Origin? = nil
    ) {
        self.items = items
        self.form = form
        self.purpose = purpose
        self.expectations = expectations
        self.tagGuard = tagGuard
        self.idempotency = idempotency
        self.contentHash = contentHash
        self.subject = subject
        self.trace = trace
        self.wantsRepresentation = wantsRepresentation
        self.origin = origin
        var (bytesCount, hasIDs) = (0, false)
        // A subscript reads one field of an item.
        for index in items.indices {
            bytesCount += items[index].sent?.count ?? 0
            hasIDs = hasIDs || items[index].id != nil
        }
        (sentBytesCount, hasClientIDs) = (bytesCount, hasIDs)
    }

    /// The actions as a follow-up of a commit.
    func caused(by causation: Causation) -> Transaction {
        Transaction(items, form: form, subject: causation.subject, origin: Origin(causation))
    }

    package var withoutRepresentation: Transaction { copy(items, wantsRepresentation: false) }

    func copy(
        _ items: [Item], wantsRepresentation: Bool, expectations: [Expectation]? = nil
    ) -> Transaction {
        Transaction(
            items, form: form, purpose: purpose, expectations: expectations ?? self.expectations, tagGuard: tagGuard,
            idempotency: idempotency, contentHash: contentHash, subject: subject, trace: trace,
            wantsRepresentation: wantsRepresentation)
    }

    /// The answer to a commit, which is its cause; the store commits one under a key, whatever its actions are.
    package func answering(_ commit: Commit, once key: IdempotencyKey) -> Transaction {
        let causation = Causation(
            cause: commit.id, root: commit.root ?? commit.id, rootVersion: commit.version, depth: 0, subject: subject)
        return Transaction(
            items, form: form, expectations: expectations, idempotency: (key, "answer"), subject: subject,
            origin: Origin(causation))
    }
}

package enum TagSet: Hashable, Sendable {
    /// `*`: any tag, so any value.
    case any
    case tags([String])

    /// Whether the set has a tag; false for nil, which stands for no value.
    package func contains(_ tag: String?) -> Bool {
        switch (self, tag) {
        case (_, nil): false
        case (.any, _?): true
        case (.tags(let tags), let tag?): tags.contains(tag)
        }
    }
}

/// The result of a transaction, with its long parts behind a reference: it is copied on its way to the client.
package enum Outcome: Sendable {
    /// The commit is published and, where there is a journal, durable.
    case committed(Receipt)
    /// A dry run: the store would have committed the transaction with this patch; nil if there was no room for it.
    case wouldCommit(isChange: Bool, patch: [UInt8]?)
    case nothingCommitted
    indirect case rejected(Rejection, index: Int)
    indirect case preconditionFailed(PreconditionFailure)
    case keyReused(key: String)
    case full(Resource)
    /// The journal will not have the commit, or a scheduled action waits for a later turn.
    case notRecorded
    /// The journal failed while it took the commit, which may be in it after a restart. The ID is the client's: another
    /// commit can get the cursor that this one would have had.
    case unknown(id: String?)
    /// The new state cannot be encoded, which is a fault of the domain. The state is unchanged.
    case failed(detail: String)
    case draining

    package enum Resource: Sendable { case mailbox, idempotencyKeys, idempotencyKeysOfClient }

    var mayBeginCascade: Bool {
        switch self {
        case .committed, .nothingCommitted: true
        case .wouldCommit, .rejected, .preconditionFailed, .keyReused, .full, .notRecorded, .unknown, .failed,
            .draining:
            false
        }
    }

    package var valuesBytesCount: Int {
        switch self {
        case .committed(let receipt):
            receipt.representation?.reduce(0) { $0 + ($1.value?.count ?? 0) + 64 } ?? 0
        case .wouldCommit(_, let patch): patch?.count ?? 0
        case .preconditionFailed(let failure): (failure.expected?.count ?? 0) + (failure.actual?.count ?? 0)
        case .nothingCommitted, .rejected, .keyReused, .full, .notRecorded, .unknown, .failed, .draining: 0
        }
    }

    /// Whether its answer shows the tag of a long value, which nobody has made yet: no turn makes it.
    package var lacksTag: Bool { if case .preconditionFailed(let failure) = self { failure.lacksTag } else { false } }

    /// Makes the tag; O(n) in the size of the value.
    package func makeTag() { if case .preconditionFailed(let failure) = self { _ = failure.actualTag } }

    package var withoutValues: Outcome {
        switch self {
        case .committed(let receipt): .committed(receipt.withoutRepresentation)
        case .wouldCommit(let isChange, _): .wouldCommit(isChange: isChange, patch: nil)
        case .preconditionFailed(let failure): .preconditionFailed(failure.withoutValues)
        case .nothingCommitted, .rejected, .keyReused, .full, .notRecorded, .unknown, .failed, .draining: self
        }
    }
}

/// The outcome of a commit as the client reads it.
public final class Receipt: Sendable {
    /// The version that the commit made.
    public var version: Version { commitCursor.version }
    /// The commit's ID: the client's ID, or else the commit's cursor.
    public var id: String { ownID ?? cursor }
    /// The commit's cursor.
    public var cursor: String { commitCursor.description }
    package let commitCursor: Cursor
    /// Whether the state differs from the version before; true behind a direct turn, which compares nothing.
    package let isChange: Bool
    package let ownID: String?
    package let isReplay: Bool
    /// The types of the committed actions, in order; empty for a replay, whose types the store does not keep.
    package let types: [String]
    /// The changed parts of the new state with their JSON, nil for a removed part; nil without a request for it.
    package let representation: [(pointer: JSONPointer, value: [UInt8]?)]?
    package let scheduled: [ScheduledAction]

    init(
        _ commitCursor: Cursor, ownID: String?, isChange: Bool, isReplay: Bool, types: [String] = [],
        representation: [(pointer: JSONPointer, value: [UInt8]?)]? = nil, scheduled: [ScheduledAction] = []
    ) {
        self.scheduled = scheduled
        self.commitCursor = commitCursor
        (self.ownID, self.isChange) = (ownID, isChange)
        self.isReplay = isReplay
        self.types = types
        self.representation = representation
    }

    fileprivate var withoutRepresentation: Receipt {
        Receipt(commitCursor, ownID: ownID, isChange: isChange, isReplay: isReplay, types: types, scheduled: scheduled)
    }
}
