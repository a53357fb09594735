package import StateJSON

/// A history that a journal keeps, read without serving it.
///
/// It ends at the version that was the newest when it was opened, also where a server goes on to write. Each read has a few
/// megabytes of commits in memory, and throws where a commit has been dropped since; none is passed over.
package protocol RecordedHistory {
    var epoch: Epoch { get }
    var latest: Version { get }

    /// Whose history it is; nil for one of an earlier program.
    var domain: HistoryDomain? { get }

    /// The oldest version after which every commit is kept.
    func oldest() throws -> Version

    /// Calls `body` while what it reads of the history stays as it is, and is verified, before or by the reading itself.
    func holding<Value>(_ body: () throws -> Value) throws -> Value

    /// Verifies the chain of commits, and what stands beside it; at `time`, keys may have expired.
    func verify(_ depth: HistoryDepth, at time: Timestamp) throws

    /// The oldest undamaged state that is kept with every commit after it.
    func beginning() throws -> HistoryBeginning

    func beginning(at version: Version) throws -> HistoryBeginning

    /// Calls `body` with each commit after a version up to ``latest``, in order, with the clients' IDs.
    func forEachCommit(after start: Version, _ body: (Commit) throws -> Void) throws

    /// The versions of the saved states, oldest first.
    func snapshots() throws -> [Version]

    /// A saved state as ``SavedState`` has it, or nil if it is damaged or gone.
    func snapshot(_ version: Version) throws -> [UInt8]?

    /// The idempotency keys of the commits up to a version, at which a beginning is, that have outlived their commits.
    func keys(through version: Version) throws -> [KeyRecord]
}

package enum HistoryDepth: Sendable {
    /// The chain, and what a start needs.
    case plain
    /// Besides: each snapshot, and each index.
    case deep
}

package typealias HistoryBeginning = (version: Version, state: [UInt8])

/// A new history in a place that has none, which is there whole after ``finish()`` or not at all.
///
/// A draft that is released before leaves nothing where it can be removed; what a process leaves that was killed is no
/// history, and the next draft in its place removes it. Only one thread may use a draft.
package protocol HistoryDraft: AnyObject {
    var epoch: Epoch { get }

    /// Says whose history it is; before its beginning.
    var domain: HistoryDomain? { get set }

    /// Begins the history behind a version, with the unexpired keys of commits up to that version.
    func begin(version: Version, keys: [KeyRecord]) throws

    func append(_ commit: Commit) throws

    func save(_ state: [UInt8]) throws

    /// Makes the draft the history of its place; its newest version has a saved state.
    func finish() throws
}

package struct JournalSpan: Sendable {
    package let epoch: Epoch
    package let start: Version
    package let end: Version
    /// The version after which reducers have run on the actions, in a verification.
    package var reducedAfter: Version?
    package var damagedSnapshots: [Version] = []

    package init(epoch: Epoch, start: Version, end: Version) {
        (self.epoch, self.start, self.end) = (epoch, start, end)
    }

    package var commitsCount: Int { Int(end - start) }
}

extension RecordedHistory {
    /// Writes the whole history to a draft, and finishes it: states, commits as they are recorded, and keys.
    ///
    /// Under another epoch, an ID that is a cursor becomes the cursor of that epoch. A damaged snapshot is left out, because an
    /// older one and the commits after it make the same state. O(n) in the size of the history.
    package func copy(to draft: some HistoryDraft) throws -> JournalSpan {
        try holding {
            let change = EpochChange(from: epoch, to: draft.epoch)
            let oldest = try oldest()
            var saved = try snapshots().drop { $0 < oldest }
            draft.domain = domain
            try draft.begin(version: oldest, keys: keys(through: oldest).map(change.key))
            var isSaved = false
            func save(at version: Version) throws {
                isSaved = false
                guard saved.first == version else { return }
                saved.removeFirst()
                guard let state = try snapshot(version) else { return }
                try draft.save(change.saved(state))
                isSaved = true
            }
            try save(at: oldest)
            try forEachCommit(after: oldest) { commit in
                try draft.append(change.commit(commit))
                try save(at: commit.version)
            }
            if !isSaved { try draft.save(change.saved(beginning(at: latest).state)) }
            try draft.finish()
            return JournalSpan(epoch: draft.epoch, start: oldest, end: latest)
        }
    }
}

package struct HistoryVersions: Sendable, Encodable {
    package var oldestState: Version
    /// The version of the oldest commit; one above `latest` without commits.
    package var oldestCommit: Version
    package var latest: Version

    package init(oldestState: Version, oldestCommit: Version, latest: Version) {
        (self.oldestState, self.oldestCommit, self.latest) = (oldestState, oldestCommit, latest)
    }
}

package struct SnapshotSize: Sendable, Encodable {
    package var version: Version
    package var bytes: Int

    package init(version: Version, bytes: Int) {
        (self.version, self.bytes) = (version, bytes)
    }
}

package struct HistoryDomain: Codable, Equatable, Sendable {
    /// Such as `document`, or `model tasks.js`.
    package var name: String
    /// The version after which every commit is of this domain.
    package var since: Version
    /// Whether a server has held the state to a schema; nil for no.
    package var isHeldToSchema: Bool?

    package init(name: String, since: Version, isHeldToSchema: Bool? = nil) {
        (self.name, self.since, self.isHeldToSchema) = (name, since, isHeldToSchema)
    }
}

package struct DomainClaim: Sendable {
    package let name: String
    package var takesOthers: Bool
    package var hasSchema: Bool

    package init(_ name: String, takesOthers: Bool = false, hasSchema: Bool = false) {
        (self.name, self.takesOthers, self.hasSchema) = (name, takesOthers, hasSchema)
    }

    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
    }

    /// The record that a history gets, or nil if it has this one.
    ///
    /// A history without a record is taken for one of this domain. The record also says whether a schema holds the state.
    package func record(
        of recorded: HistoryDomain?, endingAt latest: Version, in place: String
    ) throws(Refusal) -> HistoryDomain? {
        let schema = hasSchema ? true : nil
        guard let recorded else { return HistoryDomain(name: name, since: 0, isHeldToSchema: schema) }
        if recorded.name.utf8.elementsEqual(name.utf8) {
            // A history that was held to a schema once stays so, unless the operator says that it is to be another one.
            guard hasSchema != (recorded.isHeldToSchema ?? false), hasSchema || takesOthers else { return nil }
            return HistoryDomain(name: name, since: recorded.since, isHeldToSchema: schema)
        }
        guard takesOthers else {
            throw Refusal(
                description:
                    "the journal \(place) belongs to the domain \(recorded.name), and the domain \(name) is to be served: serve \(recorded.name), name another place for the data, or give the journal to \(name) with --change-domain"
            )
        }
        return HistoryDomain(name: name, since: latest, isHeldToSchema: schema)
    }
}

package struct EpochChange {
    let from: Epoch
    let to: Epoch

    package init(from: Epoch, to: Epoch) {
        (self.from, self.to) = (from, to)
    }

    package func commit(_ commit: Commit) -> Commit {
        guard from != to else { return commit }
        return Commit(
            version: commit.version, time: commit.time, id: id(commit.id), cause: commit.cause.map(id),
            root: commit.root.map(id), by: commit.by, trace: commit.trace, types: commit.types,
            action: commit.action, patch: commit.patch,
            changedPointers: commit.changedPointers, clientIDs: commit.clientIDs,
            idempotency: commit.idempotency.map(key),
            // The store has encoded the changes, so they can be read.
            schedule: commit.schedule.flatMap { try? ScheduleChanges($0.json, under: self) })
    }

    package func saved(_ state: [UInt8]) throws(JSONFault) -> [UInt8] {
        from == to ? state : try SavedState(saved: state, under: self).bytes
    }

    package func key(_ key: KeyRecord) -> KeyRecord {
        KeyRecord(
            key: key.key, fingerprint: key.fingerprint, version: key.version, id: id(key.id), isChange: key.isChange,
            expiry: key.expiry, client: key.client)
    }

    package func id(_ id: String) -> String {
        guard let cursor = Cursor(text: id), cursor.epoch == from else { return id }
        return Cursor(to, cursor.version).description
    }
}
