internal import Logging
internal import StateCluster
internal import StateJournal
internal import StateStore

struct OpenedJournal {
    let journal: any Journal
    let setDomain: (HistoryDomain) throws -> Void
    var cluster: ClusterJournal?
    let epoch: Epoch
    let place: String
    private(set) var recovery: JournalRecovery
    /// The domain of the history; nil for a new history, and for one whose server had no name for its domain.
    var domain: HistoryDomain?
    var commitBytesMax: Int?

    static func directory(of settings: Settings) -> String? {
        settings.data == "none" || ClusterAddress.isMeant(by: settings.data) ? nil : settings.data
    }

    static func open(
        _ settings: Settings, onDamage policy: StateServer.DamagePolicy, at now: Timestamp, _ logger: Logger,
        initial: () throws -> [UInt8]
    ) throws -> OpenedJournal? {
        let log = JournalLog(logger)
        switch try JournalPlace(settings.data, settings) {
        case nil: return nil
        case .directory(let directory):
            return try ServerFault.translating {
                let (journal, recovery) = try SQLiteJournal.open(
                    directory: directory, retention: settings.retention,
                    acceptsLoss: policy == .acceptLoss, at: now, report: { log.log($0) },
                    initial: initial)
                return try OpenedJournal(
                    journal: journal, setDomain: journal.setDomain, epoch: journal.epoch,
                    place: "in this data directory", recovery: recovery, domain: journal.domain())
            }
        case .cluster(let address):
            return try ServerFault.translating {
                let (journal, recovery) = try ClusterJournal.open(
                    address, reachedAt: settings.clusterAddress.unlessNone,
                    directory: settings.clusterDirectory.unlessNone,
                    retention: settings.retention, report: { log.log($0) }, initial: initial)
                return try OpenedJournal(
                    journal: journal, setDomain: journal.setDomain, cluster: journal, epoch: journal.epoch,
                    place: address.description, recovery: recovery,
                    domain: journal.whenReached { try journal.domain() }, commitBytesMax: ClusterJournal.commitBytesMax)
            }
        }
    }

    /// A document beside the turns in etcd, which the journal follows from now on; nil for a journal in a directory.
    private func followed(_ key: String, name: String, _ settings: Settings) throws -> ClusterFile? {
        guard let cluster, let address = try settings.etcdAddress() else { return nil }
        let document = try ServerFault.translating { try cluster.document(key) }
        return ClusterFile(document, name: name, at: address, key)
    }

    func tokenFile(_ settings: Settings) throws -> TokenFile? {
        guard settings.tokens == "data" else { return nil }
        return try followed("tokens", name: TokenFile.name, settings).map { TokenFile($0) }
    }

    func quarantine(_ settings: Settings, _ logger: Logger) throws -> Quarantine {
        guard let file = try followed("quarantine", name: QuarantineFile.name, settings) else {
            return try Quarantine(directory: settings.data, QuarantineFile(directory: settings.data), logger: logger)
        }
        return try Quarantine(
            directory: settings.clusterDirectory.unlessNone, QuarantineFile(file),
            server: settings.clusterAddress.unlessNone, logger: logger)
    }

    func hooks(
        _ settings: Settings, schedule: Schedule, metrics: ServerMetrics, _ logger: Logger
    ) throws -> Hooks? {
        guard let place = try JournalPlace(settings.data, settings) else { return nil }
        let file =
            try followed(HookFile.key, name: HookFile.name, settings)
            ?? place.document(HookFile.key, name: HookFile.name)
        let progress = try place.document(HookProgressFile.key, name: HookProgressFile.name)
        return try Hooks(file, progress: progress, settings, schedule: schedule, metrics: metrics, logger: logger)
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
                "the journal \(place) does not take a commit: \(journal.failure ?? "other servers write all the time")")
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
