internal import StateJSON
internal import StateJournal
internal import StateStore

/// Does what can be done with the journal in a data directory without a server.
///
/// ``export(since:to:)`` and ``verify(_:_:)`` only read, so a server may run on the same directory. ``load(_:)`` and
/// ``replay(_:_:)`` make a whole new journal, or none, in a directory without one. Each holds the state and a few megabytes
/// of commits in memory, for a history of any length.
struct JournalTool: Sendable {
    /// How much is verified.
    enum Depth: Sendable {
        /// The fence, the chain, the tables, the newest snapshot, and what the domain's reducers make of each action.
        case plain
        /// Besides: each snapshot, the index of IDs, and the table of keys.
        case deep
    }

    let directory: String

    /// Makes a tool for the directory in the setting `data`.
    ///
    /// - Throws: ``SettingsFault`` when `data` is `none`.
    init(settings: Settings) throws(SettingsFault) {
        directory = settings.data
        guard OpenedJournal.directory(of: settings) != nil else {
            throw SettingsFault(
                description: "data is \(directory): there is no journal in a directory; name one with --data")
        }
    }

    /// Writes the history as JSON Lines: a header with a state, then one line for each commit after it.
    ///
    /// The last line is the commit that is the latest when the export begins.
    ///
    /// - Parameters:
    ///   - since: the version of the state to begin with; by default the oldest one that the journal keeps with all
    ///     commits after it.
    ///   - write: takes one or more whole lines, UTF-8, with their line feeds.
    /// - Throws: `JournalError`, or what `write` throws.
    @discardableResult
    func export(since: Version? = nil, to write: ([UInt8]) throws -> Void) throws -> JournalSpan {
        let reader = try JournalReader(directory: directory)
        let beginning = try since.map { try reader.beginning(at: $0) } ?? reader.beginning()
        try write(
            Recording.line(
                of: .init(
                    epoch: reader.epoch, version: beginning.version, latest: reader.latest, state: beginning.state)))
        try reader.forEachCommit(after: beginning.version) { try write(Recording.line(of: $0)) }
        return JournalSpan(epoch: reader.epoch, start: beginning.version, end: reader.latest)
    }

    /// Makes a journal from a recording: the commits as recorded, under a new epoch.
    ///
    /// No reducer runs. The commits keep the IDs that clients gave; an ID that is a cursor becomes the cursor of the new
    /// epoch.
    ///
    /// - Parameter nextLine: returns the next line without its line feed, or nil after the last.
    /// - Throws: `JournalError`, or an error whose sentence names the line. No journal is made then.
    func load(_ nextLine: () throws -> [UInt8]?) throws -> JournalSpan {
        try build(from: nextLine) { header in
            PatchedState(try JSONValue(parsing: header.state, depthMax: 1000), version: header.version)
        }
    }

    /// Makes a journal from the actions of a recording: the domain's reducers compute the patches, under a new epoch.
    ///
    /// No middleware and no effect runs, because a recording holds the actions that have reached the reducers. The commits
    /// keep their times and IDs.
    ///
    /// - Parameter nextLine: returns the next line without its line feed, or nil after the last.
    /// - Throws: `JournalError`, or an error whose sentence names the line, also where the domain does not know an action or
    ///   rejects it. No journal is made then.
    func replay(_ domain: some Domain, _ nextLine: () throws -> [UInt8]?) throws -> JournalSpan {
        let compiled = try CompiledDomain(domain)
        return try build(from: nextLine) { header in
            try Replay(compiled, from: header.state, version: header.version)
        }
    }

    private func build(
        from nextLine: () throws -> [UInt8]?, by begin: (Recording.Header) throws -> any HistoryFollower
    ) throws -> JournalSpan {
        let draft = try JournalDraft(directory: directory)
        var reader = try RecordingReader(nextLine(), for: draft.epoch)
        let header = reader.header
        var follower: any HistoryFollower
        do {
            follower = try begin(header)
        } catch let fault as JSONFault {
            throw RecordingFault(line: 1, "the state does not fit the domain: at \(fault.pointer) \(fault.detail)")
        }
        try draft.begin(follower.bytes(), version: header.version)
        while let line = try nextLine() {
            let recorded = try reader.take(line)
            let commit: Commit
            do throws(HistoryFault) {
                commit = try follower.take(recorded)
            } catch {
                throw RecordingFault(line: reader.line, "\(error)")
            }
            try draft.append(commit)
        }
        try reader.end()
        try draft.finish(follower.bytes(), version: follower.version)
        return JournalSpan(epoch: draft.epoch, start: header.version, end: follower.version)
    }

    /// Verifies the fence, the whole chain of commits and the tables, then reduces every kept commit again and compares the result with the recorded patch.
    ///
    /// Where two patches differ, the states decide. Saved snapshots are compared, too.
    ///
    /// - Parameter depth: ``Depth/deep`` reads everything in one transaction, so that the WAL of a server that runs grows
    ///   meanwhile.
    /// - Throws: `JournalError`, or an error whose sentence names the first version and the pointer that differ, or the
    ///   action that the domain does not know or rejects.
    func verify<D: Domain>(_ domain: D, _ depth: Depth = .plain) throws -> JournalSpan {
        let compiled = try CompiledDomain(domain)
        let reader = try JournalReader(directory: directory)
        switch depth {
        case .plain: try reader.verify()
        case .deep: try reader.verifyDeeply(at: .now())
        }
        let beginning = try reader.beginning()
        var verification: Verification<D.State>
        do {
            verification = try Verification(compiled, from: beginning.state, version: beginning.version)
        } catch let fault as JSONFault {
            throw SettingsFault(
                description:
                    "the state of version \(beginning.version) does not fit the domain: at \(fault.pointer) \(fault.detail); was it made by another domain?"
            )
        }
        var snapshots = try reader.snapshots(after: beginning.version)[...]
        try reader.forEachCommit(after: beginning.version) { commit in
            try verification.take(commit)
            guard snapshots.first == commit.version else { return }
            snapshots.removeFirst()
            // A start skips a damaged snapshot, too. A running server may have dropped this one since the list was read.
            if let saved = try reader.snapshot(commit.version) { try verification.compare(saved: saved, after: commit) }
        }
        return JournalSpan(epoch: reader.epoch, start: beginning.version, end: reader.latest)
    }
}
