package import StateJSON

/// What one request asks of the store: an action or several as one, and the conditions under which.
package struct Transaction: Sendable {
    /// What an item asks for.
    package enum Content: Sendable {
        case action(any Action)
        /// What the state at that moment is turned into, perhaps nothing. It is given a state of the store's type.
        case creator(@Sendable (any Sendable) throws(Rejection) -> (any Action)?)
    }

    /// An action with what came beside it.
    package struct Item: Sendable {
        package var content: Content
        /// The client's own ID.
        package var id: String?
        /// UTF-8 JSON object, recorded and never interpreted.
        package var meta: [UInt8]?

        /// Makes an item.
        package init(_ action: any Action, id: String? = nil, meta: [UInt8]? = nil) {
            content = .action(action)
            self.id = id
            self.meta = meta
        }

        /// Makes an item whose action is made in its turn.
        init(creator: @escaping @Sendable (any Sendable) throws(Rejection) -> (any Action)?) {
            content = .creator(creator)
        }

        /// The type of its action; nil where that is not known before its turn.
        var type: String? {
            switch content {
            case .action(let action): Swift.type(of: action).type
            case .creator: nil
            }
        }
    }

    /// A value that must stand at a place at the moment of the commit.
    package struct Expectation: Sendable {
        package var pointer: JSONPointer
        package var value: JSONValue

        /// Makes an expectation.
        package init(_ pointer: JSONPointer, _ value: JSONValue) {
            self.pointer = pointer
            self.value = value
        }
    }

    /// A content tag that a place must have at the moment of the commit.
    package struct TagGuard: Sendable {
        package var pointer: JSONPointer
        package var tags: TagSet

        /// Makes a guard.
        package init(_ pointer: JSONPointer, _ tags: TagSet) {
            self.pointer = pointer
            self.tags = tags
        }
    }

    /// Whether the items came as an array: recorded as one.
    package enum Form: Sendable { case single, batch }
    /// Whether anything is kept.
    package enum Purpose: Sendable { case commit, dryRun }

    package var items: [Item]
    package var form: Form
    package var purpose = Purpose.commit
    package var expectations: [Expectation] = []
    package var tagGuard: TagGuard?
    package var idempotency: (key: String, fingerprint: String)?
    /// Whether the outcome brings the changed parts of the new state.
    package var wantsRepresentation = false
    /// Where it comes from, when a commit has caused it.
    var causation: Causation?

    /// Whether it is committed only under conditions.
    var isConditional: Bool { tagGuard != nil || !expectations.isEmpty }

    /// Makes a transaction that is committed without conditions.
    package init(_ items: [Item], form: Form = .single) {
        self.items = items
        self.form = form
    }
}

/// The content tags that a client has named.
package enum TagSet: Hashable, Sendable {
    /// `*`: whatever is there.
    case any
    /// These.
    case tags([String])

    /// Whether content with this tag, nil where there is none, is among them.
    package func contains(_ tag: String?) -> Bool {
        switch (self, tag) {
        case (_, nil): false
        case (.any, _?): true
        case (.tags(let tags), let tag?): tags.contains(tag)
        }
    }
}

/// What became of a transaction.
package enum Outcome: Sendable {
    /// It is in the history and, where there is a journal, on the disk.
    case committed(Receipt)
    /// It would have been committed, with this patch.
    case wouldCommit(isChange: Bool, patch: [UInt8])
    /// Nothing was to be committed: a middleware swallowed every action, or their creators made none.
    case nothingCommitted
    /// A reducer or a middleware did not take the item at `index`.
    case rejected(Rejection, index: Int)
    /// An expectation or a tag guard did not hold.
    case preconditionFailed(PreconditionFailure)
    /// The idempotency key has been used with another body.
    case keyReused(key: String)
    /// The mailbox, or the ledger of idempotency keys, has no room.
    case full(Resource)
    /// The journal did not take it. Nothing has happened.
    case notRecorded
    /// The new state cannot be encoded, which is a fault of the domain. Nothing has happened.
    case failed(detail: String)
    /// The store is stopping.
    case draining

    /// What has no room.
    package enum Resource: Sendable { case mailbox, idempotencyKeys }
}

/// The proof of a commit.
public final class Receipt: Sendable {
    /// The version that it made.
    public let version: Version
    /// The commit's ID: the client's own, or else the commit's cursor.
    public let id: String
    /// Whether the state differs from the version before.
    public let isChange: Bool
    /// Whether this is the answer to an earlier request with the same key.
    package let isReplay: Bool
    /// The types of the actions that were committed, in order; of a replay they are not known any more.
    package let types: [String]
    /// The changed parts of the new state with their JSON, nil for what is gone; nil where it was not asked for.
    package let representation: [(pointer: JSONPointer, value: [UInt8]?)]?

    init(
        version: Version, id: String, isChange: Bool, isReplay: Bool, types: [String] = [],
        representation: [(pointer: JSONPointer, value: [UInt8]?)]? = nil
    ) {
        self.version = version
        self.id = id
        self.isChange = isChange
        self.isReplay = isReplay
        self.types = types
        self.representation = representation
    }
}
