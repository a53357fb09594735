internal import Logging
internal import StateCluster
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The lines about failures of a journal: the first one, then at most one in ten seconds, and one when it works again.
///
/// A full disk refuses each action, and a line for each would help to fill it.
struct FailureLines {
    static let pause = Duration.seconds(10)
    private var lastLine: ContinuousClock.Instant?
    private var count = 0
    private var isTold = false

    /// The number of failures since the last line, this one included; or nil for no line.
    mutating func fail(at now: ContinuousClock.Instant) -> Int? {
        count += 1
        if let lastLine, lastLine.duration(to: now) < Self.pause { return nil }
        defer { count = 0 }
        (lastLine, isTold) = (now, true)
        return count
    }

    /// The number of failures since the last line, or nil if no line has told of one.
    mutating func succeed() -> Int? {
        guard isTold else { return nil }
        defer { (count, isTold) = (0, false) }
        return count
    }
}

final class JournalLog: Sendable {
    private let logger: Logger
    private let lines = Mutex(FailureLines())

    init(_ logger: Logger) { self.logger = logger }

    private func log(_ loss: Loss) {
        var metadata: Logger.Metadata = [
            "reason": .string(loss.reason), "epoch": .string(loss.epoch.text),
            "set_aside": .string(loss.aside.joined(separator: ", ")), "history_start": .stringConvertible(loss.start),
            "unreadable_key_rows": .stringConvertible(loss.unreadableKeys),
        ]
        metadata["version"] = .string(loss.version.map { "\($0)" } ?? "none")
        let good = loss.version ?? 0
        if let acknowledged = loss.acknowledged, acknowledged > good {
            metadata["lost"] = .string(
                "versions \(good + 1) to \(acknowledged), and what came after the last record of the fence")
        } else {
            metadata["lost"] = "commits that cannot be read before the history's start, or after its version"
        }
        logger.error("loss accepted", metadata: metadata)
    }

    func log(_ event: ClusterEvent) {
        switch event {
        case .appendFailed(let reason, let isOpen): log(JournalEvent.appendFailed(reason: reason, isOpen: isOpen))
        case .appendsAgain: log(JournalEvent.appendsAgain)
        case .snapshotNotSaved(let reason): log(JournalEvent.snapshotNotSaved(reason: reason))
        case .waiting(let reason): logger.warning("waiting for etcd", metadata: ["reason": .string(reason)])
        case .notFollowing(let reason?): logger.warning("not following etcd", metadata: ["reason": .string(reason)])
        case .notFollowing(nil): logger.notice("following etcd again")
        case .quotaUsed(let reason?): logger.warning("etcd's quota is used", metadata: ["reason": .string(reason)])
        case .quotaUsed(nil): logger.notice("etcd has room again")
        case .olderThanSeen:
            logger.warning(
                "the history in etcd is older than this server has seen it, as after a restore, and has a new epoch")
        case .epochRenewed(nil):
            logger.warning("the history in etcd has a new epoch; restart this server to go on with it")
        case .epochRenewed(let reason?): logger.error("no new epoch", metadata: ["reason": .string(reason)])
        case .writer(.this): logger.notice("this server writes")
        case .writer(.other(let address)):
            logger.notice("another server writes", metadata: ["address": .string(address)])
        case .writer(.nobody): logger.notice("no server writes")
        }
    }

    func log(_ event: JournalEvent) {
        switch event {
        case .appendFailed(let reason, let isOpen):
            guard let count = lines.withLock({ $0.fail(at: .now) }) else { return }
            logger.error(
                "journal failed",
                metadata: [
                    "reason": .string(reason), "outcome": isOpen ? "unknown" : "not recorded",
                    "failures": .stringConvertible(count),
                ])
        case .appendsAgain:
            guard let count = lines.withLock({ $0.succeed() }) else { return }
            logger.notice(
                "journal takes commits again", metadata: count == 0 ? [:] : ["failures": .stringConvertible(count)])
        case .checked(let check):
            logger.info(
                "journal checked",
                metadata: [
                    "commits": .stringConvertible(check.end - check.start), "after": .string(check.beginning),
                    "bytes": .stringConvertible(check.segmentBytes), "tables": .stringConvertible(check.isFileVerified),
                    "duration_us": .stringConvertible(check.duration / .microseconds(1)),
                ])
        case .fencePartial:
            logger.warning(
                "fence damaged",
                metadata: [
                    "reason":
                        "one of the two records of the fence is not whole; the other one serves, and the file is written anew"
                ])
        case .lossAccepted(let loss): log(loss)
        case .snapshotNotSaved(let reason): logger.warning("snapshot not saved", metadata: ["reason": .string(reason)])
        case .idsNotIndexed(let reason): logger.warning("ids not indexed", metadata: ["reason": .string(reason)])
        }
    }
}
