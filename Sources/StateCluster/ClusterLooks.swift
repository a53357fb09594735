internal import Dispatch
internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

extension ClusterJournal {
    package var writer: ClusterWriter { lease.writer }

    /// Nil while the server follows a majority of the etcds; what is acknowledged elsewhere may be missing for so long.
    package var staleness: Duration? { condition.withLock { $0.isStale } ? lease.age : nil }

    /// Any thread may call it, when ``staleness`` begins or ends.
    package func watchStaleness(_ changed: @escaping @Sendable () -> Void) {
        condition.withLock { $0.staleWatcher = changed }
    }

    /// Any thread calls the function.
    package func write(while isFit: @escaping @Sendable () -> Bool) { condition.withLock { $0.isFit = isFit } }

    func take(_ finding: WriterLease.Finding) {
        let writer = lease.writer
        if condition.withLock({ exchange(&$0.writer, with: writer) }) != writer { report(.writer(writer)) }
        switch finding {
        case .current(let newest):
            // The newest turn of half a second ago has come by now, or the watch does not tell.
            if condition.withLock({ exchange(&$0.newest, with: newest) }) > known.withLock({ $0.tip.version }) {
                catchUp()
                follower.renew()
            }
            noteTurn(atLeastAfter: .seconds(2))
            guard let changed = turnStale(false) else { return }
            probe()
            report(.notFollowing(reason: nil))
            changed()
        case .replaced(let detail): end(detail)
        case .older(let detail):
            end("\(detail); a server that starts now goes on with what is there, under a new epoch")
            // The watch or an append may have noticed something else first.
            guard !condition.withLock({ exchange(&$0.hasRenewedEpoch, with: true) }) else { break }
            background.async { [self] in
                // Clients have cursors of what is lost, and later commits will have its versions.
                do {
                    try stored.renewEpoch(of: found)
                    report(.epochRenewed(failure: nil))
                } catch {
                    report(.epochRenewed(failure: "\(error)"))
                }
            }
        case .failed(let reason):
            guard lease.age > Self.ageMax, let changed = turnStale(true) else { return }
            condition.withLock { $0.failure = $0.failure ?? "no majority of the etcds answers: \(reason)" }
            report(.notFollowing(reason: reason))
            changed()
        }
    }

    func noteTurn(atLeastAfter pause: Duration) {
        guard let directory = stored.directory, condition.withLock({ $0.broken == nil }) else { return }
        let turn = known.withLock { SeenTurn($0.epoch, secret: secret, $0.tipKey, $0.tip.hash) }
        let isDue = condition.withLock { condition in
            if let seen = condition.seen, seen.turn == turn || seen.time + pause > .now { return false }
            condition.seen = (turn, .now)
            return true
        }
        // A slow disk holds up no look at etcd.
        if isDue { background.async { turn.note(in: directory) } }
    }

    func take(_ found: QuotaWatch.Finding?) {
        let found = found.flatMap { $0.isAlarmed || $0.share >= QuotaWatch.warned ? $0 : nil }
        let before = condition.withLock { exchange(&$0.quota, with: found) }
        guard (found == nil) != (before == nil) || found?.isFull != before?.isFull else { return }
        report(.quotaUsed(reason: found?.sentence))
    }

    private func turnStale(_ isStale: Bool) -> (() -> Void)? {
        condition.withLock { condition in
            guard exchange(&condition.isStale, with: isStale) != isStale else { return nil }
            return condition.staleWatcher ?? {}
        }
    }
}

/// By its file, which may be deleted at any time, a later start finds out that etcd was restored from an older backup
/// while no server ran, but for the two seconds before a kill.
struct SeenTurn: Codable, Equatable {
    private var epoch: String
    private(set) var key: Version
    private var hash: [UInt8]
    /// Hash of the history's secret, which a copy with the same epoch has not; nil in a file of an earlier program.
    private var origin: String?

    private static let name = "seen-turn.json"

    init(_ epoch: Epoch, secret: String?, _ key: Version, _ hash: SegmentHash) {
        (self.epoch, origin, self.key, self.hash) = (epoch.text, Self.origin(secret), key, hash.bytes)
    }

    /// A restored etcd has the secret that it had; a copy has another one, and other turns with the same commits.
    init?(in directory: String, of epoch: Epoch, secret: String?) {
        guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(Self.name)")),
            let seen = try? Etcd.decode(Self.self, from: bytes), seen.epoch == epoch.text,
            seen.origin == nil || seen.origin == Self.origin(secret)
        else { return nil }
        self = seen
    }

    /// A failure is ignored: a later start then notices less.
    func note(in directory: String) {
        try? FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try? Data(JSON.encode(self)).write(to: URL(fileURLWithPath: "\(directory)/\(Self.name)"), options: .atomic)
    }

    private static func origin(_ secret: String?) -> String? {
        secret.map { StoredHistory.hash(Array($0.utf8)) }
    }

    func isTurn(_ value: [UInt8]) -> Bool { value.prefix(16).elementsEqual(hash) }
}
