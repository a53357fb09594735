/// Keeps the commits of a store so that they outlive it.
///
/// A journal may have several writers: another process may append between two turns of this store. An append therefore
/// names the version that it builds on, and a store adopts commits that it did not make. Any thread may call any method.
package protocol Journal: AnyObject, Sendable {
    /// Appends a turn's commits behind a version, all or none, and returns when it knows whether they are durable.
    ///
    /// - Parameter commits: in the order of the versions, beginning with `version + 1`. Only a shared journal gets
    ///   none, and then only finds out whether the version is the newest.
    func append(_ commits: [Commit], after version: Version) -> AppendResult

    /// The commits after a version, oldest first and without a gap, at most `limit` and about 16 megabytes.
    func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit]

    /// The page for a query, or nil if the journal does not keep the commit after the query's version.
    ///
    /// The cost is O(n) in the commits that the page examines.
    func page(_ query: ChangesQuery, latest: Cursor) throws -> ChangesPage?

    func commit(version: Version) throws -> Commit?

    /// The newest commit with an ID that a client gave; a nil `subject` stands for any.
    func commit(id: String, by subject: String?) throws -> Commit?

    /// The state at a version with its schedule, or nil if the journal keeps no snapshot so old.
    func state(at version: Version) throws -> SavedState?

    func oldestState() throws -> Version

    /// Offers a snapshot, which the journal may save, outside the turn that calls this.
    /// It calls `saved` after it has saved the snapshot, with the oldest version that a client can follow from.
    func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (_ oldest: Version) -> Void)

    /// Notes how far the time of the history has come, by which its keys expire; at once, and now and then on the disk.
    func note(historyTime: Timestamp)

    /// Whether another process may append.
    var isShared: Bool { get }

    func follow(_ appended: @escaping @Sendable () -> Void)

    /// The reason why the last append failed, as a sentence; nil while the journal takes commits.
    var failure: String? { get }

    var bytesCount: Int? { get }

    /// Whether commits of a failed append may still come into the journal.
    ///
    /// The next append that lands ends this, and so does a ``probe()`` that resets ``failure``: those commits are then in the
    /// journal or not for good.
    var isOutcomeOpen: Bool { get }

    /// Tries to write as an append does, so that a failed journal can recover without one.
    func probe()

    /// Closes the journal, which may save the last snapshot; after an error the commits are durable all the same.
    func close(_ snapshot: Snapshot) throws
}

extension Journal {
    package func page(_ query: ChangesQuery, latest: Cursor) throws -> ChangesPage? {
        let commits = try commits(after: query.since, through: latest.version, limit: ChangesPaging.examinedMax)
        guard !commits.isEmpty || query.since >= latest.version else { return nil }
        return ChangesPage(query, from: commits, latest: latest)
    }

    package func commit(version: Version) throws -> Commit? {
        version > 0 ? try commits(after: version - 1, through: version, limit: 1).first : nil
    }
}

package enum AppendResult: Sendable {
    case landed
    /// Another writer has appended first, behind this version: of the commits, only those up to it are in the journal.
    case refused(after: Version)
    /// The journal has failed: none of the commits is in it, or will be; ``Journal/failure`` has the reason.
    case failed
    /// The journal has failed and does not know whether the commits are durable: see ``Journal/isOutcomeOpen``.
    case unknown
}

/// How much of a history a journal keeps; one in etcd counts neither bytes nor seconds.
package struct JournalRetention: Sendable {
    /// How many of the newest commits are kept, besides the ones after the oldest snapshot and in the segment of a kept one.
    package var commitsMax: Int
    /// How many snapshots are kept, at least 2; no state before the oldest can be read.
    package var snapshotsMax: Int
    /// How many bytes of segments are kept, besides those after the second-newest snapshot; snapshots are saved so often
    /// that these are about a quarter of it.
    package var bytesMax: Int
    /// For how many seconds a commit is kept, besides those after the second-newest snapshot; 0 for no limit.
    ///
    /// While there are commits, snapshots are saved so often that these span about a quarter of it.
    package var secondsMax: Int

    package init(commitsMax: Int = 1_000_000, snapshotsMax: Int = 8, bytesMax: Int = 1 << 30, secondsMax: Int = 0) {
        self.secondsMax = secondsMax
        self.commitsMax = commitsMax
        self.snapshotsMax = snapshotsMax
        self.bytesMax = bytesMax
    }
}
