package import StateJSON

/// One transaction as the store applied it: version, time, ID, actions and patch.
///
/// A store keeps many of them, so what few commits have is in an object of its own.
public final class Commit: Sendable {
    private final class Details: Sendable {
        let id: String?
        let cause: String?
        let root: String?
        let by: String?
        let trace: String?
        let clientIDs: [String]
        let idempotency: KeyRecord?
        let schedule: ScheduleChanges?

        init(
            id: String?, cause: String?, root: String?, by: String?, trace: String?, clientIDs: [String],
            idempotency: KeyRecord?, schedule: ScheduleChanges?
        ) {
            self.schedule = schedule
            self.id = id
            self.cause = cause
            self.root = root
            self.by = by
            self.trace = trace
            self.clientIDs = clientIDs
            self.idempotency = idempotency
        }
    }

    /// The version that the commit made.
    public let version: Version
    /// The time at which the turn of the commit began.
    public let time: Timestamp
    /// The client's own ID, or else the commit's cursor.
    ///
    /// The cursor is unique and ordered, so the pure core needs no random IDs, and only the IDs of clients need an index.
    public var id: String { details?.id ?? epoch.map { Cursor($0, version).description } ?? "" }
    /// The ID of the commit that caused this one; nil for a commit that no other caused.
    public var cause: String? { details?.cause }
    /// The ID of the commit that began the cascade; nil for a commit that no other caused.
    public var root: String? { details?.root }
    package var by: String? { details?.by }
    package var trace: String? { details?.trace }
    /// The types of its actions, in order.
    public let types: [String]
    /// UTF-8 JSON: the action as an object, or an atomic batch as an array of objects.
    package let action: [UInt8]
    /// UTF-8 JSON: the RFC 6902 operations from the version before to this one.
    package let patch: [UInt8]
    /// The JSON Pointers whose values changed; a commit that was read from the journal has none.
    package let changedPointers: [JSONPointer]
    package var clientIDs: [String] { details?.clientIDs ?? [] }
    package var idempotency: KeyRecord? { details?.idempotency }
    package var schedule: ScheduleChanges? { details?.schedule }
    private let epoch: Epoch?
    private let details: Details?
    package var hasDetails: Bool { details != nil }

    /// The type of the commit that adds newly declared parts of a domain to a recorded state, so that followers learn
    /// of it and later patches fit.
    ///
    /// A recorded part that the domain does not declare refuses the start, because to drop it silently would lose it.
    package static let upgradeType = "storekeeper/upgrade"

    /// The type of the action, without a reducer, that makes an earlier state, or that of a fork, the present one.
    package static let restoreType = "storekeeper/restore"

    package static let typesOfTheStore = [
        upgradeType, restoreType, StoreResume.type, StoreSchedule.type, StoreUnschedule.type, StoreRefused.type,
    ]
    /// Whether the commit is its patch: no reducer has made it.
    package var isOfPatchAlone: Bool { types == [Self.upgradeType] || types == [Self.restoreType] }

    package static func isOfTheStore(_ type: String) -> Bool { typesOfTheStore.contains(type) }

    /// Whether the state differs from the version before.
    public var isChange: Bool { patch.count > 2 }

    package init(
        version: Version, time: Timestamp, id: String, cause: String? = nil, root: String? = nil, by: String? = nil,
        trace: String? = nil, types: [String], action: [UInt8], patch: [UInt8], changedPointers: [JSONPointer] = [],
        clientIDs: [String] = [], idempotency: KeyRecord? = nil, schedule: ScheduleChanges? = nil
    ) {
        self.version = version
        self.time = time
        self.types = types
        self.action = action
        self.patch = patch
        self.changedPointers = changedPointers
        epoch = nil
        details = Details(
            id: id, cause: cause, root: root, by: by, trace: trace, clientIDs: clientIDs, idempotency: idempotency,
            schedule: schedule)
    }

    /// The `ownID` is what the client gave to the only action; the cursor names any other commit.
    init(
        _ cursor: Cursor, time: Timestamp, of transaction: Transaction, ownID: String?, types: [String],
        action: [UInt8], patch: [UInt8], changedPointers: [JSONPointer], idempotency: KeyRecord?,
        schedule: ScheduleChanges?
    ) {
        version = cursor.version
        epoch = cursor.epoch
        self.time = time
        self.types = types
        self.action = action
        self.patch = patch
        self.changedPointers = changedPointers
        let hasDetails =
            idempotency != nil || schedule != nil || transaction.origin != nil || transaction.subject != nil
            || transaction.trace != nil
            || transaction.hasClientIDs
        details =
            hasDetails
            ? Details(
                id: ownID, cause: transaction.causation?.cause, root: transaction.causation?.root,
                by: transaction.subject, trace: transaction.trace, clientIDs: transaction.clientIDs,
                idempotency: idempotency, schedule: schedule)
            : nil
    }

    func with(patch: [UInt8], changedPointers: [JSONPointer]) -> Commit {
        Commit(
            version: version, time: time, id: id, cause: cause, root: root, by: by, trace: trace, types: types,
            action: action, patch: patch, changedPointers: changedPointers, clientIDs: clientIDs,
            idempotency: idempotency, schedule: schedule)
    }

    /// Whether a client gave exactly this ID, byte by byte; a subject of nil stands for any.
    package func has(clientID id: String, by subject: String? = nil) -> Bool {
        (subject == nil || ExactText(optional: subject) == ExactText(optional: by))
            && clientIDs.contains { JSONPointer.sameBytes($0, id) }
    }

    /// The names by which an index finds the commit: its clients' IDs, and each behind the subject, so that no other subject
    /// can take an ID away.
    package var names: [CommitName] {
        guard let details, !details.clientIDs.isEmpty else { return [] }
        let names = details.clientIDs.map { CommitName($0, by: nil) }
        guard let by = details.by else { return names }
        return names + details.clientIDs.map { CommitName($0, by: by) }
    }

    var recordedBytesCount: Int { action.count + patch.count + (schedule?.json.count ?? 0) }

    var partsCount: Int { 1 + changedPointers.count + types.count }

    package var weight: Int {
        256 + action.count + patch.count + changedPointers.count * 48 + 2 * (schedule?.json.count ?? 0)
    }
}

/// The record of a commit with an idempotency key, an object because the ledger moves its entries when it grows.
package final class KeyRecord: Sendable, Equatable {
    package let key: IdempotencyKey
    /// A hash of the request's body: the store refuses the same key with another body.
    package let fingerprint: String
    package let version: Version
    package let id: String
    package let isChange: Bool
    /// The time of the history from which the key no longer counts: see ``HistoryClock``.
    package let expiry: Timestamp
    /// The client to whose share of the ledger the key counts, or nil for one that counts for all clients only.
    package let client: String?

    package init(
        key: IdempotencyKey, fingerprint: String, version: Version, id: String, isChange: Bool, expiry: Timestamp,
        client: String? = nil
    ) {
        self.key = key
        self.fingerprint = fingerprint
        self.version = version
        self.id = id
        self.isChange = isChange
        self.expiry = expiry
        self.client = client
    }

    package static func == (left: KeyRecord, right: KeyRecord) -> Bool {
        (left.key, left.fingerprint, left.version, ExactText(left.id), left.isChange)
            == (right.key, right.fingerprint, right.version, ExactText(right.id), right.isChange)
            && (left.expiry, ExactText(optional: left.client)) == (right.expiry, ExactText(optional: right.client))
    }

    func expiring(by latest: Timestamp) -> KeyRecord {
        guard expiry > latest else { return self }
        return KeyRecord(
            key: key, fingerprint: fingerprint, version: version, id: id, isChange: isChange, expiry: latest,
            client: client)
    }
}

/// A name by which an index finds a commit: an ID that a client gave, of one subject or of any.
package struct CommitName: Hashable, Sendable {
    package let id: ExactText
    package let subject: ExactText?

    package init(_ id: String, by subject: String?) {
        self.id = ExactText(id)
        self.subject = ExactText(optional: subject)
    }

    /// The hash of both texts with a NUL between them, as journals have it.
    ///
    /// Two names may have one hash, so a reader compares the commit that it finds.
    package var hash: ContentHash {
        ContentHash(subject.map { "\($0.text)\0\(id.text)" } ?? id.text)
    }
}
