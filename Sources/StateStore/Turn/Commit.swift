package import StateJSON

/// Milliseconds since 1970-01-01T00:00:00Z.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// The count.
    public var milliseconds: Int64

    /// Makes a timestamp.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Earlier first.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    /// The instant that much later.
    package func advanced(by duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        return Timestamp(milliseconds: milliseconds + seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    }
}

/// One step of the history: what was done, when, and what it changed.
public final class Commit: Sendable {
    /// The version that it made.
    public let version: Version
    /// When the turn that made it began.
    public let time: Timestamp
    /// The client's own ID, or else the commit's cursor.
    public let id: String
    /// The ID of the commit that caused it, where one did.
    public let cause: String?
    /// The ID of the commit that began the cascade, where there is one.
    public let root: String?
    /// The types of its actions, in order.
    public let types: [String]
    /// UTF-8 JSON: the action as an object, or an atomic batch as an array of them.
    package let action: [UInt8]
    /// UTF-8 JSON: the RFC 6902 operations from the version before to this one.
    package let patch: [UInt8]
    /// The places whose value changed; empty when nothing did.
    ///
    /// A commit read back from the journal has none.
    package let changedPointers: [JSONPointer]
    /// The IDs that clients have given: of the action, or of those inside an atomic batch.
    package let clientIDs: [String]
    /// What a retry with the same key is answered.
    package let idempotency: KeyRecord?

    /// The type of the commit that extends a state by what a domain has come to declare.
    ///
    /// No reducer handles it.
    package static let upgradeType = "storekeeper/upgrade"

    /// Whether commits of this type are the store's own doing.
    package static func isOfTheStore(_ type: String) -> Bool { type == upgradeType || type == StoreResume.type }

    /// Whether the state differs from the version before.
    public var isChange: Bool { patch.count > 2 }

    /// Makes a commit.
    package init(
        version: Version, time: Timestamp, id: String, cause: String? = nil, root: String? = nil, types: [String],
        action: [UInt8], patch: [UInt8], changedPointers: [JSONPointer] = [], clientIDs: [String] = [],
        idempotency: KeyRecord? = nil
    ) {
        self.version = version
        self.time = time
        self.id = id
        self.cause = cause
        self.root = root
        self.types = types
        self.action = action
        self.patch = patch
        self.changedPointers = changedPointers
        self.clientIDs = clientIDs
        self.idempotency = idempotency
    }

    /// The same commit with another patch.
    func with(patch: [UInt8], changedPointers: [JSONPointer]) -> Commit {
        Commit(
            version: version, time: time, id: id, cause: cause, root: root, types: types, action: action, patch: patch,
            changedPointers: changedPointers, clientIDs: clientIDs, idempotency: idempotency)
    }

    /// The same commit with the IDs that clients have given.
    package func with(clientIDs: [String]) -> Commit {
        Commit(
            version: version, time: time, id: id, cause: cause, root: root, types: types, action: action, patch: patch,
            changedPointers: changedPointers, clientIDs: clientIDs, idempotency: idempotency)
    }

    /// About how much memory it takes, in bytes.
    var weight: Int { 256 + action.count + patch.count + changedPointers.count * 48 }
}

/// What the store remembers of a commit that came with an idempotency key.
package struct KeyRecord: Sendable, Equatable {
    package let key: String
    /// A hash of the request's body: the same key with another body is an error.
    package let fingerprint: String
    package let version: Version
    package let id: String
    package let isChange: Bool
    /// Until when the key is kept.
    package let expiry: Timestamp

    /// Makes a record.
    package init(
        key: String, fingerprint: String, version: Version, id: String, isChange: Bool, expiry: Timestamp
    ) {
        self.key = key
        self.fingerprint = fingerprint
        self.version = version
        self.id = id
        self.isChange = isChange
        self.expiry = expiry
    }
}
