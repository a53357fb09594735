/// Where a store's commits go, so that they survive it.
///
/// A journal may have several writers: another process may append between two turns of this store. So an append names the
/// version that it builds on, and a store takes in commits that it did not make. Any thread may call any method.
package protocol Journal: AnyObject, Sendable {
    /// Appends a turn's commits, all or none, behind a version, and returns when it is known whether they are durable.
    ///
    /// - Parameters:
    ///   - commits: in the order of their versions, the first one `version + 1`; not empty.
    ///   - version: the newest version that the store knows of.
    func append(_ commits: [Commit], after version: Version) -> AppendResult

    /// Commits after a version, oldest first and without a gap, at most `limit` and about 16 megabytes.
    ///
    /// - Throws: what describes itself in a sentence, when the journal cannot be read.
    func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit]

    /// The commits after a position that pass a filter, or nil where the next commit is not kept.
    ///
    /// It costs the commits that it looks at.
    func page(_ query: ChangesQuery, latest: Cursor) throws -> ChangesPage?

    /// The commit that made a version, if it is kept.
    func commit(version: Version) throws -> Commit?

    /// The newest commit with a client's own ID, if it is kept.
    func commit(id: String) throws -> Commit?

    /// The state at a version as JSON, or nil where no snapshot so old is kept.
    func state(at version: Version) throws -> [UInt8]?

    /// The oldest version whose state can be looked at.
    func oldestState() throws -> Version

    /// Considers saving a snapshot of the newest state, beside the turns.
    ///
    /// - Parameters:
    ///   - snapshot: the state that has just landed.
    ///   - saved: called with the oldest version that can be followed from, where a snapshot has been saved.
    func offer(_ snapshot: any AnySnapshot, saved: @escaping @Sendable (_ oldest: Version) -> Void)

    /// Has a function called whenever another writer has appended; a journal with one writer never calls it.
    func follow(_ appended: @escaping @Sendable () -> Void)

    /// Why the last append failed; nil while the journal takes commits.
    var failure: String? { get }

    /// Tries to write, so that a journal that has failed is found to work again without an action to try it on.
    func probe()

    /// Ends the journal: saves the last snapshot where that is worth it.
    ///
    /// - Throws: what describes itself in a sentence. What was appended is durable all the same.
    func close(_ snapshot: any AnySnapshot) throws
}

/// What became of an append.
package enum AppendResult: Sendable {
    /// The commits are durable.
    case landed
    /// Another writer has appended behind the same version first: none of the commits is in the journal.
    case refused
    /// The journal cannot say: it has failed, and ``Journal/failure`` says how.
    case unknown
}
