internal import StateCluster
internal import StateJSON
internal import StateJournal
internal import StateStore

enum JournalPlace: Sendable, CustomStringConvertible {
    case directory(String)
    case cluster(ClusterAddress)

    init?(_ text: String, _ settings: Settings) throws(SettingsFault) {
        guard text != "none" else { return nil }
        self = ClusterAddress.isMeant(by: text) ? .cluster(try settings.etcdAddress(text)) : .directory(text)
    }

    init(of text: String, _ settings: Settings) throws(SettingsFault) {
        guard let place = try JournalPlace(text, settings) else {
            throw SettingsFault("there is no journal in \(text); name a directory or an etcd:// address")
        }
        self = place
    }

    var description: String {
        switch self {
        case .directory(let path): path
        case .cluster(let address): address.description
        }
    }

    var directory: String {
        get throws(SettingsFault) {
            guard case .directory(let path) = self else {
                throw SettingsFault("data is \(self): this command works on a directory only")
            }
            return path
        }
    }

    func history() throws -> any RecordedHistory {
        switch self {
        case .directory(let path): try JournalReader(directory: path)
        case .cluster(let address): try ClusterHistory(address)
        }
    }

    /// Whether a history is there, even a damaged one; it throws if etcd does not say.
    var hasHistory: Bool {
        get throws {
            switch self {
            // There is no other reason to throw.
            case .directory(let path): (try? JournalReader.check(path)) != nil
            case .cluster(let address): try ClusterHistory.isThere(address)
            }
        }
    }

    var domain: HistoryDomain? {
        get throws {
            switch self {
            case .directory(let path): try JournalReader(directory: path).domain
            case .cluster(let address): try ClusterHistory.domain(address)
            }
        }
    }

    func draft(epoch: Epoch = .random()) throws -> any HistoryDraft {
        switch self {
        case .directory(let path): try JournalDraft(directory: path, epoch: epoch)
        case .cluster(let address): try ClusterDraft(address, epoch: epoch)
        }
    }

    /// A document beside the journal; an opened journal in etcd follows it from now on.
    func document(
        _ key: String, name: String, followedBy cluster: ClusterJournal? = nil
    ) throws -> any SharedDocument {
        switch self {
        case .directory(let path):
            return SharedFile(path: "\(path)/\(key).json", name: name, isSecret: key == HookEntry.key)
        case .cluster(let address):
            do {
                let document = try cluster?.document(key) ?? ClusterDocument(address, key)
                return ClusterFile(document, name: name, at: address, key)
            } catch {
                if cluster != nil, let fault = ServerFault(error) { throw fault }
                throw SettingsFault("\(error)")
            }
        }
    }

    func copyDocuments(to other: JournalPlace) throws -> [String] {
        var copied: [String] = []
        for (key, name) in [(TokenEntry.key, TokenEntry.name), (QuarantineEntry.key, QuarantineEntry.name)] {
            guard let bytes = try document(key, name: name).bytes() else { continue }
            try other.document(key, name: name).change { (there) throws(SettingsFault) in there == nil ? bytes : nil }
            copied.append(name)
        }
        return copied
    }

    /// Throws where the history may go on beside a copy of its epoch; a cluster passes, copied at one revision of etcd.
    func refuseInUse() throws {
        if case .directory(let path) = self { try JournalReader.refuseInUse(path) }
    }

    var finding: String {
        func history() -> String {
            do {
                let history = try self.history()
                return "epoch \(history.epoch.text), version \(history.latest)"
            } catch {
                return "\(error)"
            }
        }
        return switch self {
        case .directory: history()
        case .cluster(let address): "\(EtcdCount(address)); \(history())"
        }
    }
}

extension Settings {
    var journalPlace: JournalPlace {
        get throws(SettingsFault) { try JournalPlace(of: self.data, self) }
    }
}

/// Work on a journal without a server, with the state and a few megabytes of commits in memory at a time.
///
/// ``export(since:to:)`` and ``verify(_:_:)`` only read, so a server may run; the others make a whole journal, or none.
extension JournalPlace {
    /// With the epoch, the copy goes on where the journal has ended, so the journal must not have gone on.
    func copy(to other: JournalPlace, keepsEpoch: Bool) throws -> JournalSpan {
        let history = try self.history()
        return try history.copy(to: other.draft(epoch: keepsEpoch ? history.epoch : .random()))
    }

    /// The state is by default the oldest with all commits after it; the last commit is the latest as the export begins.
    @discardableResult
    func export(since: Version? = nil, to write: ([UInt8]) throws -> Void) throws -> JournalSpan {
        let reader = try history()
        let beginning = try since.map { try reader.beginning(at: $0) } ?? reader.beginning()
        try write(
            Recording.line(
                of: .init(
                    epoch: reader.epoch, version: beginning.version, latest: reader.latest, state: beginning.state)))
        try reader.forEachCommit(after: beginning.version) { try write(Recording.line(of: $0)) }
        return JournalSpan(epoch: reader.epoch, start: beginning.version, end: reader.latest)
    }

    /// How many actions a subject has scheduled itself; O(n) in the state and in the commits behind the newest snapshot.
    func scheduledCount(by subject: String) throws -> Int {
        let history = try self.history()
        var count = 0
        try SavedState(saved: history.beginning(at: history.latest).state).schedule.visit { action in
            guard !action.name.isPlace, !action.isOfReducer, let by = action.name.by, JSONPointer.sameBytes(by, subject)
            else { return }
            count += 1
        }
        return count
    }

    /// Finds the first commit after which a test holds by O(log n) looks; nil is for the oldest.
    func bisect(
        _ test: ValueTest, from start: Version?
    ) throws -> (found: Result<[UInt8], Bisection.Miss>, looks: Int) {
        let history = try self.history()
        let low = try start ?? history.beginning().version
        let (found, looks) = try Bisection.first(after: low, through: history.latest) { version in
            let saved = try SavedState(saved: history.beginning(at: version).state)
            let state = try JSONValue(parsing: saved.state, depthMax: 1000)
            return test.holds(for: state[pointer: test.pointer])
        }
        struct Found: Error {
            let line: [UInt8]
        }
        guard case .success(let version) = found else { return (found.map { _ in [] }, looks) }
        do {
            try history.forEachCommit(after: version - 1) { throw Found(line: Recording.line(of: $0)) }
        } catch let found as Found {
            return (.success(found.line), looks)
        }
        throw SettingsFault("the commit of version \(version) is no longer kept")
    }

    /// The commits get a new epoch, and no reducer runs; an ID that is a cursor becomes the cursor of the new epoch.
    func load(_ nextLine: () throws -> [UInt8]?) throws -> JournalSpan {
        try build(from: nextLine) { header in
            try PatchedState(parsing: header.state, version: header.version)
        }
    }

    /// No middleware and no effect runs, because a recording holds the actions that have reached the reducers.
    func replay(_ domain: some Domain, named name: String? = nil, _ nextLine: () throws -> [UInt8]?) throws
        -> JournalSpan
    {
        let compiled = try CompiledDomain(domain)
        return try build(from: nextLine, of: name) { header in
            try Replay(compiled, from: header.state, version: header.version)
        }
    }

    private func build(
        from nextLine: () throws -> [UInt8]?, of domain: String? = nil,
        by begin: (Recording.Header) throws -> any HistoryFollower
    ) throws -> JournalSpan {
        let draft = try self.draft()
        var reader = try RecordingReader(nextLine(), for: draft.epoch)
        let header = reader.header
        var follower: any HistoryFollower
        do {
            follower = try begin(header)
        } catch let fault as JSONFault {
            throw RecordingFault(line: 1, "the state does not fit the domain: at \(fault.pointer) \(fault.detail)")
        }
        draft.domain = domain.map { HistoryDomain(name: $0, since: header.version) }
        try draft.begin(version: header.version, keys: [])
        try draft.save(follower.bytes())
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
        if follower.version > header.version { try draft.save(follower.bytes()) }
        try draft.finish()
        return JournalSpan(epoch: draft.epoch, start: header.version, end: follower.version)
    }

    /// Verifies the whole chain of commits, and reduces every kept commit again unless the domain is nil.
    ///
    /// Commits up to the last migration or change of domain are of other reducers: their patches alone are applied.
    func verify(_ domain: (any Domain)?, _ depth: HistoryDepth = .plain) throws -> JournalSpan {
        guard let domain else { return try verifyHistory(depth) { _, _ in nil } }
        let compiled = try CompiledDomain(domain)
        return try verifyHistory(depth) { state, version in
            do {
                return try Verification(compiled, from: state, version: version)
            } catch let fault as JSONFault {
                throw SettingsFault(
                    "the state of version \(version) does not fit the domain: at \(fault.pointer) \(fault.detail); was it made by another domain?"
                )
            }
        }
    }

    private func verifyHistory(
        _ depth: HistoryDepth, _ begin: ([UInt8], Version) throws -> Verification?
    ) throws -> JournalSpan {
        let reader = try history()
        try reader.verify(depth, at: .now())
        let beginning = try reader.beginning()
        var migration = max(beginning.version, min(reader.domain?.since ?? 0, reader.latest))
        try reader.forEachCommit(after: beginning.version) { commit in
            if commit.types == [Commit.upgradeType] { migration = max(migration, commit.version) }
        }
        let reduced = migration == beginning.version ? try begin(beginning.state, migration) : nil
        var verification = try reduced ?? Verification(from: beginning.state, version: beginning.version)
        let oldest = try reader.oldest()
        let saved = try reader.snapshots()
        var snapshots = saved.drop { $0 <= beginning.version }
        var damaged = saved.filter { (oldest..<max(oldest, beginning.version)).contains($0) }
        try reader.forEachCommit(after: beginning.version) { commit in
            try verification.verify(commit)
            if snapshots.first == commit.version {
                snapshots.removeFirst()
                if let saved = try reader.snapshot(commit.version) {
                    try verification.compare(saved: saved, after: commit)
                } else {
                    damaged.append(commit.version)
                }
            }
            if commit.version == migration, let reduced = try begin(verification.bytes(), migration) {
                verification = reduced
            }
        }
        var span = JournalSpan(epoch: reader.epoch, start: beginning.version, end: reader.latest)
        span.reducedAfter = verification.isReduced ? migration : nil
        if !damaged.isEmpty {
            // A running server may have dropped some of them since the list was read.
            let kept = try reader.snapshots()
            span.damagedSnapshots = damaged.filter(kept.contains)
        }
        return span
    }
}
