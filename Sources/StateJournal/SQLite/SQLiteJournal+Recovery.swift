internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore
internal import Synchronization

extension SQLiteJournal {
    /// The contents of a journal for a store that starts.
    package struct Recovery: Sendable {
        /// The newest state, as ``SavedState`` has it.
        package var state: [UInt8]
        package var version: Version
        /// The oldest version after which the journal has all commits.
        package var oldest: Version
        /// The keys that have not expired, oldest first.
        package var keys: [KeyRecord]
        /// The time from which the history goes on, by which the keys expire.
        package var historyTime: Timestamp
        /// How many patches were applied to the snapshot.
        package var patchesCount: Int
        /// How many bytes those patches have.
        package var patchesBytes: Int
        /// How many bytes the segments of those commits have.
        package var segmentsBytes: Int
        /// A sentence for the operator for each snapshot that is damaged.
        package var warnings: [String]
    }

    /// Reads the newest state: the newest usable snapshot, with the patches after it applied.
    ///
    /// No reducer runs. The cost is that of one snapshot and of the commits after it, independent of the length of the
    /// journal.
    ///
    /// - Parameter time: the current time of the wall clock, from which the time of the history goes on where the journal has
    ///   none. It then begins before the first key expires, because the clock may be ahead.
    /// - Throws: ``JournalError`` when no snapshot is usable, or a commit after it is missing or damaged.
    package func recover(at time: Timestamp) throws -> Recovery {
        let (recovery, written) = try reading { (try read($0, at: time), try rows.historyTime($0)) }
        withHistoryTime { $0 = NotedHistoryTime(latest: recovery.historyTime, written: written) }
        snapshots.withLock {
            $0.begin(
                commits: recovery.patchesCount, patchBytes: recovery.patchesBytes, bytes: recovery.segmentsBytes,
                snapshotBytes: recovery.state.count)
        }
        return recovery
    }

    private func read(_ db: Database, at time: Timestamp) throws -> Recovery {
        var warnings: [String] = []
        let latest = try rows.latestVersion(db)
        let (state, count, bytes) = try rows.state(db, upTo: latest, warnings: &warnings)
        let all = try rows.keys(db)
        let historyTime =
            try rows.historyTime(db)
            ?? all.reduce(time) { min($0, Timestamp(milliseconds: $1.expiry.milliseconds &- 1)) }
        return Recovery(
            state: state.bytes(), version: state.version, oldest: try rows.oldest(db),
            keys: all.filter { $0.expiry > historyTime }, historyTime: historyTime,
            patchesCount: count, patchesBytes: bytes,
            segmentsBytes: try rows.segmentsBytes(db, after: state.version - Version(count)), warnings: warnings)
    }

    /// Returns the state at a version as UTF-8 JSON, or nil when every snapshot is newer.
    package func state(at version: Version) throws -> SavedState? {
        try reading { db in
            guard version >= (try rows.oldestState(db)) else { return nil }
            var warnings: [String] = []
            return try rows.state(db, upTo: version, warnings: &warnings).state.saved
        }
    }

    /// Returns the oldest version whose state the journal has.
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

// MARK: - Commits

extension SQLiteJournal {
    /// Returns the commits after a version, oldest first; at most `limit` commits and about 16 megabytes.
    ///
    /// - Parameter last: the published version: the journal has the commits of a turn before the store publishes them.
    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        try reading { db in
            try rows.commits(db, after: version, through: last, limit: limit)
        }
    }

    /// Returns a page of the commits that pass a filter, or nil if the journal has pruned the first commit.
    ///
    /// The page ends before a damaged commit. O(n) in the number of commits that it examines.
    ///
    /// - Throws: ``JournalError`` when the first commit is missing or damaged.
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

    /// Returns the commit of a version, or nil when the journal lacks it.
    package func commit(version: Version) throws -> Commit? {
        try reading { try rows.commit($0, version) }
    }
}
