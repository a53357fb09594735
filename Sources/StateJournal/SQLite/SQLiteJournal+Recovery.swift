internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore
internal import Synchronization

/// The state with which a store begins, and what comes with it.
package struct JournalRecovery: Sendable {
    package var state: [UInt8]
    package var version: Version
    package let oldest: Version
    /// Oldest first.
    package var keys: [KeyRecord]
    /// The time from which the history goes on; nil for that of the wall clock.
    package let historyTime: Timestamp?
    package let patchesCount: Int
    package let warnings: [String]

    package init(
        state: [UInt8], version: Version, oldest: Version, keys: [KeyRecord], historyTime: Timestamp?,
        patchesCount: Int, warnings: [String]
    ) {
        (self.state, self.version, self.oldest, self.keys) = (state, version, oldest, keys)
        (self.historyTime, self.patchesCount, self.warnings) = (historyTime, patchesCount, warnings)
    }
}

extension SQLiteJournal {
    /// No reducer runs: the cost is that of the newest usable snapshot and of the commits after it; a missing time of
    /// the history is `time`, but before the first key expires, because the clock may be ahead.
    package func recover(at time: Timestamp) throws -> JournalRecovery {
        try reading { db in
            var warnings: [String] = []
            let latest = try rows.latestVersion(db)
            let (state, count, patchBytes) = try rows.state(db, upTo: latest, warnings: &warnings)
            let all = try rows.keys(db)
            let written = try rows.historyTime(db)
            let historyTime =
                written ?? all.reduce(time) { min($0, Timestamp(milliseconds: $1.expiry.milliseconds &- 1)) }
            let recovery = JournalRecovery(
                state: state.bytes(), version: state.version, oldest: try rows.oldest(db),
                keys: all.filter { $0.expiry > historyTime }, historyTime: historyTime, patchesCount: count,
                warnings: warnings)
            let bytes = try rows.segmentsBytes(db, after: state.version - Version(count))
            withHistoryTime { $0 = NotedHistoryTime(latest: historyTime, written: written) }
            snapshots.withLock {
                $0.begin(
                    commits: count, patchBytes: patchBytes, bytes: bytes, snapshotBytes: recovery.state.count)
            }
            return recovery
        }
    }

    /// Nil when every snapshot is newer.
    package func state(at version: Version) throws -> SavedState? {
        try reading { db in
            guard version >= (try rows.oldestState(db)) else { return nil }
            var warnings: [String] = []
            return try rows.state(db, upTo: version, warnings: &warnings).state.saved
        }
    }

    package func oldestState() throws -> Version {
        try reading { try rows.oldestState($0) }
    }

    func reading<Value>(_ read: (Database) throws -> Value) throws -> Value {
        do {
            return try database.read(read)
        } catch {
            throw JournalError("read", path, error)
        }
    }
}

extension SQLiteJournal {
    /// About 16 megabytes at most, oldest first; the journal has the commits of a turn before the store publishes them,
    /// so `last` is the published version.
    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        try reading { db in
            try rows.commits(db, after: version, through: last, limit: limit)
        }
    }

    /// Nil if the first commit is pruned; the page ends before a damaged commit, and O(n) commits are examined.
    package func page(_ query: ChangesQuery, latest: StateStore.Cursor) throws -> ChangesPage? {
        var paging = ChangesPaging(query, latest: latest)
        do {
            try reading { db in
                try rows.read(db, after: query.since, through: latest.version) { paging.take($0) }
            }
        } catch {
            // The page after this one begins at the damage and reports it.
            guard paging.page.next > query.since else { throw error }
        }
        // The journal may have pruned the first commit since the caller asked.
        return paging.page.next > query.since ? paging.page : nil
    }
}
