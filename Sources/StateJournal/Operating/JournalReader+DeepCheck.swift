internal import FoundationEssentials
internal import GRDB
internal import StateJSON
internal import StateStore

extension JournalReader {
    func verifyDeeply(_ db: Database, at time: Timestamp) throws {
        try StartCheck.verifyTables(db, path, by: "integrity_check")
        try verifySnapshots(db)
        try verifyIDs(db)
        try verifyKeys(db, at: time)
    }

    private func verifySnapshots(_ db: Database) throws {
        var last: PatchedState?
        for version in try rows.snapshotVersions(db, through: .max) {
            guard let (state, chain) = try rows.snapshot(db, version) else {
                throw JournalError(damagedSnapshot: version, path)
            }
            try rows.verify(db, version, chain)
            if var made = last {
                try rows.read(db, after: made.version, through: version) { commit in
                    do throws(HistoryFault) {
                        _ = try made.take(commit)
                    } catch {
                        throw JournalError(damaged: path, "the patches do not fit: \(error)")
                    }
                    return true
                }
                guard made.version == version, made.value == state.value, made.schedule == state.schedule else {
                    throw JournalError(
                        damaged: path, "the snapshot of version \(version) is not the state that the commits make")
                }
            }
            last = state
        }
    }

    private func verifyIDs(_ db: Database) throws {
        let base = try rows.base(db).version
        let indexed = try IDTable.indexed(db) ?? base
        var entries = Set<IDVersions.Entry>()
        var count = 0
        func look() throws {
            for entry in entries {
                let isThere = try IDTable.versions(db, entry.hash).contains(entry.version)
                guard isThere else {
                    throw JournalError(damaged: path, "the index lacks an ID of version \(entry.version)")
                }
            }
            count += entries.count
            entries.removeAll(keepingCapacity: true)
        }
        try rows.read(db, after: base, through: indexed) { commit in
            entries.formUnion(IDVersions.entries(of: commit))
            if entries.count >= RecentIDs.waitingMax { try look() }
            return true
        }
        try look()
        let found = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM ids WHERE version > ? AND version <= ?",
            arguments: [Int64(base), Int64(clamping: indexed)])
        guard found == count else {
            throw JournalError(damaged: path, "the index has \(found ?? 0) IDs, and the commits have \(count)")
        }
    }

    /// Verifies that the table has the keys of each segment, which only their expiry removes.
    private func verifyKeys(_ db: Database, at time: Timestamp) throws {
        var table: [Version: [KeyRecord]] = [:]
        let base = try rows.base(db).version
        try rows.readKeys(db) { first, keys in if first > base { table[first] = keys } }
        try rows.readSegments(db, after: base, through: .max) { decoder, first in
            var keys: [KeyRecord] = []
            for index in 0..<decoder.count {
                if let key = try decoder.commit(at: index).idempotency { keys.append(key) }
            }
            let saved = table.removeValue(forKey: first)
            guard saved.map({ $0 == keys }) ?? keys.allSatisfy({ $0.expiry <= time }) else {
                throw JournalError(
                    damaged: path, "the keys of the segment from version \(first) on are not in the table")
            }
            return true
        }
        if let first = table.keys.min() {
            throw JournalError(
                damaged: path, "the table has keys from version \(first) on, and no segment begins there")
        }
    }
}
