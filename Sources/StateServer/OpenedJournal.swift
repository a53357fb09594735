internal import Logging
internal import StateCluster
internal import StateJournal
internal import StateStore

struct OpenedJournal {
    let place: JournalPlace
    let journal: any Journal
    let setDomain: (HistoryDomain) throws -> Void
    var cluster: ClusterJournal?
    let epoch: Epoch
    private(set) var recovery: JournalRecovery
    /// The domain of the history; nil for a new history, and for one whose server had no name for its domain.
    var domain: HistoryDomain?

    init?(
        _ settings: Settings, onDamage policy: StateServer.DamagePolicy, at now: Timestamp, _ logger: Logger,
        initial: () throws -> [UInt8]
    ) throws {
        guard let place = try JournalPlace(settings.data, settings) else { return nil }
        self.place = place
        let log = JournalLog(logger)
        switch place {
        case .directory(let directory):
            let (journal, recovery) = try SQLiteJournal.open(
                directory: directory, retention: settings.retention,
                acceptsLoss: policy == .acceptLoss, at: now, report: { log.log($0) },
                initial: initial)
            (self.journal, setDomain, epoch) = (journal, journal.setDomain, journal.epoch)
            self.recovery = recovery
            domain = try journal.domain()
        case .cluster(let address):
            let (journal, recovery) = try ClusterJournal.open(
                address, reachedAt: settings.clusterAddress.unlessNone,
                directory: settings.clusterDirectory.unlessNone,
                retention: settings.retention, report: { log.log($0) }, initial: initial)
            (self.journal, setDomain, epoch, cluster) = (journal, journal.setDomain, journal.epoch, journal)
            self.recovery = recovery
            domain = try journal.whenReached { try journal.domain() }
        }
    }

    var name: String { cluster == nil ? "in this data directory" : place.description }

    func document(_ key: String, name: String) throws -> any SharedDocument {
        try place.document(key, name: name, followedBy: cluster)
    }

    func newestCommit() throws -> Commit? {
        guard let cluster else { return try journal.commit(version: recovery.version) }
        return try cluster.whenReached { try cluster.commit(version: recovery.version) }
    }

    /// The result is false, with a state of a newer version, if another server has written first.
    mutating func record(_ commit: Commit, until end: ContinuousClock.Instant) throws -> Bool {
        switch journal.append([commit], after: recovery.version) {
        case .landed:
            recovery.version = commit.version
            return true
        case .refused where ContinuousClock.now < end:
            try follow()
            return false
        case .refused, .failed, .unknown:
            throw ServerFault(
                .journal,
                "the journal \(name) does not take a commit: \(journal.failure ?? "other servers write all the time")")
        }
    }

    private mutating func follow() throws {
        var followed = try PatchedState(parsing: recovery.state, version: recovery.version)
        var commits: [Commit]
        repeat {
            commits = try journal.commits(after: followed.version, through: .max, limit: 1000)
            for commit in commits {
                _ = try followed.take(commit)
                if let key = commit.idempotency { recovery.keys.append(key) }
            }
        } while !commits.isEmpty
        (recovery.state, recovery.version) = (followed.bytes(), followed.version)
    }
}
