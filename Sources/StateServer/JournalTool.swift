internal import StateJSON
internal import StateJournal
public import StateStore

/// What can be done with the journal in a data directory without serving it.
///
/// ``export(since:to:)`` and ``verify(_:)`` only read, also while a server is running. ``load(_:)`` and ``replay(_:_:)``
/// make a new journal, whole or not at all, in a directory that has none. All of them hold the state and a few megabytes of
/// commits in memory, whatever the length of the history.
public struct JournalTool: Sendable {
    /// Which commits were looked at.
    public struct Span: Sendable {
        /// The name of the history.
        public var epoch: String
        /// The version of the state that it began with.
        public var start: Version
        /// The version of the last commit.
        public var end: Version

        /// How many commits it has.
        public var commitsCount: Int { Int(end - start) }
    }

    private let directory: String

    /// A tool for the `data` of some settings.
    ///
    /// - Throws: ``SettingsFault`` when they keep the state in memory.
    public init(settings: Settings) throws(SettingsFault) {
        directory = settings.text("data")
        guard directory != "none" else {
            throw SettingsFault(description: "data is none: there is no journal; name its directory with --data")
        }
    }

    /// Writes the history as JSON Lines: a header with a state, then the commits after it, each in one call.
    ///
    /// It ends at the version that was the newest at the beginning.
    ///
    /// - Parameters:
    ///   - since: the version of the state to begin with; by default the oldest that is kept with all commits after it.
    ///   - write: takes one or more lines, UTF-8, each with its end.
    /// - Throws: `JournalError`, or what `write` throws.
    @discardableResult
    public func export(since: Version? = nil, to write: ([UInt8]) throws -> Void) throws -> Span {
        let reader = try JournalReader(directory: directory)
        let beginning = try since.map { try reader.beginning(at: $0) } ?? reader.beginning()
        try write(
            Recording.line(
                of: .init(
                    epoch: reader.epoch, version: beginning.version, latest: reader.latest, state: beginning.state)))
        try reader.forEachCommit(after: beginning.version) { try write(Recording.line(of: $0)) }
        return Span(epoch: reader.epoch.text, start: beginning.version, end: reader.latest)
    }

    /// Makes a journal of an exported one: the commits as they were recorded, under a new epoch.
    ///
    /// No reducer runs, and no domain is asked. The IDs that clients have given are kept; IDs that are cursors, which name
    /// the epoch, are those of the new one.
    ///
    /// - Parameter nextLine: the next line without its end, or nil after the last.
    /// - Throws: `JournalError`, or a sentence that names the line; then there is no journal.
    public func load(_ nextLine: () throws -> [UInt8]?) throws -> Span {
        try build(from: nextLine) { header in
            PatchedState(try JSONValue(parsing: header.state, depthMax: 1000), version: header.version)
        }
    }

    /// Makes a journal of the actions of an exported one: today's reducers make the patches, under a new epoch.
    ///
    /// No middleware and no effect runs: what is recorded is what has reached the reducers. Times and IDs are kept.
    ///
    /// - Parameter nextLine: the next line without its end, or nil after the last.
    /// - Throws: `JournalError`, or a sentence that names the line, also where the domain does not know or rejects an action;
    ///   then there is no journal.
    public func replay(_ domain: some Domain, _ nextLine: () throws -> [UInt8]?) throws -> Span {
        let model = try CompiledDomain(domain)
        return try build(from: nextLine) { header in
            try Replay(model, from: header.state, version: header.version)
        }
    }

    private func build(
        from nextLine: () throws -> [UInt8]?, by begin: (Recording.Header) throws -> any HistoryFollower
    ) throws -> Span {
        let draft = try JournalDraft(directory: directory)
        var reader = try RecordingReader(nextLine(), for: draft.epoch)
        let header = reader.header
        var follower: any HistoryFollower
        do {
            follower = try begin(header)
        } catch let fault as JSONFault {
            throw RecordingFault(line: 1, "the state does not fit the domain: at \(fault.pointer) \(fault.detail)")
        }
        try draft.begin(follower.text(), version: header.version)
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
        try draft.finish(follower.text(), version: follower.version)
        return Span(epoch: draft.epoch.text, start: header.version, end: follower.version)
    }

    /// Reduces every commit that is kept again, and compares what comes out with what is recorded.
    ///
    /// Where patches differ, the states decide. Snapshots on the way are compared, too.
    ///
    /// - Throws: `JournalError`, or a sentence that names the first version and the place that differ, or the action that
    ///   today's domain does not know or rejects.
    public func verify<D: Domain>(_ domain: D) throws -> Span {
        let model = try CompiledDomain(domain)
        let reader = try JournalReader(directory: directory)
        let beginning = try reader.beginning()
        var verification: Verification<D.State>
        do {
            verification = try Verification(model, from: beginning.state, version: beginning.version)
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
            // A damaged one is passed over by a start, too; a server may have dropped it meanwhile.
            if let saved = try reader.snapshot(commit.version) { try verification.compare(saved: saved, after: commit) }
        }
        return Span(epoch: reader.epoch.text, start: beginning.version, end: reader.latest)
    }
}
