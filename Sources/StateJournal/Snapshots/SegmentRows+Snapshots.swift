internal import FoundationEssentials
internal import GRDB
internal import StateJSON
internal import StateStore

extension SegmentRows {
    /// Verifies the commits after the snapshot, and that it belongs to their chain.
    func state(
        _ db: Database, upTo version: Version, warnings: inout [String]
    ) throws -> (state: PatchedState, patchesCount: Int, patchesBytes: Int) {
        for candidate in try snapshotVersions(db, through: version, isNewestFirst: true) {
            guard let (state, chain) = try snapshot(db, candidate) else {
                warnings.append("the snapshot of version \(candidate) is damaged; an older one is used")
                continue
            }
            do {
                try verify(db, candidate, chain)
                return try apply(db, to: state, upTo: version)
            } catch let error as PatchMismatch {
                warnings.append(
                    "the snapshot of version \(candidate) does not fit the commits after it: \(error.detail)")
            }
        }
        throw JournalError(damaged: path, "it has no snapshot that can be used for version \(version)")
    }

    /// A recovery of the newest state begins with this snapshot, as far as the hashes tell.
    func newestSnapshot(_ db: Database) throws -> Version {
        for candidate in try snapshotVersions(db, through: .max, isNewestFirst: true) {
            guard let (_, chain) = try snapshotBytes(db, candidate) else { continue }
            try verify(db, candidate, chain)
            return candidate
        }
        throw JournalError(damaged: path, "it has no snapshot that can be used for version \(try tip(db).version)")
    }

    func snapshot(_ db: Database, _ version: Version) throws -> (state: PatchedState, chain: SegmentHash)? {
        // The hash is right, so bytes that are no JSON were never a state; an older snapshot serves instead.
        guard let (bytes, chain) = try snapshotBytes(db, version),
            let state = try? PatchedState(parsing: [UInt8](bytes), version: version)
        else { return nil }
        return (state, chain)
    }

    func snapshotBytes(_ db: Database, _ version: Version) throws -> (state: Data, chain: SegmentHash)? {
        let row: Row?
        do {
            row = try Row.fetchOne(
                db, sql: "SELECT hash, chain, state FROM snapshots WHERE version = ?",
                arguments: [Int64(clamping: version)])
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            // A damaged page of a snapshot does not make the commits unreadable.
            return nil
        }
        guard let row, let chain = SegmentHash(value: row["chain"]), let state = Data.fromDatabaseValue(row["state"]),
            SegmentHash(value: row["hash"]) == Self.hash(ofSnapshot: state, version, chain)
        else { return nil }
        return (state, chain)
    }

    func insertSnapshot(_ db: Database, version: Version, state: [UInt8]) throws {
        let link = try link(db, before: version + 1)
        guard link.version >= version else { throw JournalError(lacking: link.version + 1, path) }
        let state = Data(state)
        try db.execute(
            sql: "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)",
            arguments: [
                Int64(version), Self.hash(ofSnapshot: state, version, link.hash).data, link.hash.data, state,
            ])
    }

    func deleteSnapshot(_ db: Database, _ version: Version) throws {
        try db.execute(sql: "DELETE FROM snapshots WHERE version = ?", arguments: [Int64(clamping: version)])
    }

    func snapshotVersions(
        _ db: Database, after start: Int64 = -1, through end: Version, isNewestFirst: Bool = false
    ) throws -> [Version] {
        try Int64.fetchAll(
            db,
            sql: """
                SELECT version FROM snapshots WHERE version > ? AND version <= ?
                ORDER BY version \(isNewestFirst ? "DESC" : "ASC")
                """, arguments: [start, Int64(clamping: end)]
        ).compactMap { Version(recorded: $0) }
    }

    func oldestState(_ db: Database) throws -> Version {
        try snapshotVersions(db, through: .max).first ?? 0
    }

    /// The hash of a snapshot covers its version and its place in the chain, too.
    private static func hash(ofSnapshot state: Data, _ version: Version, _ chain: SegmentHash) -> SegmentHash {
        SegmentHash(after: chain, first: version, last: version, body: state.bytes)
    }

    func verify(_ db: Database, _ version: Version, _ chain: SegmentHash) throws {
        let link = try link(db, before: version + 1)
        guard link.version >= version else { throw JournalError(lacking: link.version + 1, path) }
        guard link.hash == chain else {
            throw JournalError(damagedFrom: version, through: link.version, path)
        }
    }

    private func apply(
        _ db: Database, to snapshot: PatchedState, upTo end: Version
    ) throws -> (PatchedState, Int, Int) {
        var (state, schedule, version, bytes) = (snapshot.value, snapshot.schedule, snapshot.version, 0)
        let start = version
        try read(db, after: start, through: end) { commit in
            schedule.apply(commit.schedule)
            version = commit.version
            bytes += commit.patch.count
            // An empty array has two bytes.
            if commit.patch.count > 2 { try state.apply(patch: JSONValue(parsing: commit.patch, depthMax: 1000)) }
            return true
        }
        guard version == end else { throw JournalError(lacking: version + 1, path) }
        return (PatchedState(state, version: version, schedule: schedule), Int(end - start), bytes)
    }
}
