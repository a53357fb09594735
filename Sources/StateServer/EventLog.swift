package import Logging
internal import StateCluster
internal import StateJournal
internal import StateStore
internal import Synchronization

extension Logger {
    package func log(
        _ level: Level, _ message: Message,
        _ facts: KeyValuePairs<String, (any CustomStringConvertible & Sendable)?>,
        file: String = #fileID, function: String = #function, line: UInt = #line
    ) {
        var metadata = Metadata()
        for case (let name, let fact?) in facts { metadata[name] = .stringConvertible(fact) }
        log(level: level, message, metadata: metadata, file: file, function: function, line: line)
    }

    func log(_ record: LogRecord) {
        log(
            .debug, record.rejection == nil ? "action" : "action rejected",
            [
                "action.type": record.actionType, "version": record.version,
                "dry_run": record.isDryRun ? true : nil, "rejection": record.rejection?.code,
            ])
    }

    func log(_ event: StoreEvent) {
        switch event {
        case .followUpRefused(let refused, let root):
            log(
                .warning, "follow-up refused",
                [
                    "action.type": refused.type, "cause": refused.cause, "root": root ?? "-", "code": refused.code,
                    "reason": refused.detail,
                ])
        case .effectFailed(let type, let reason, let cause):
            log(.warning, "effect failed", ["action.type": type, "cause": cause, "reason": reason])
        case .cannotFollow(let reason): log(.error, "history cannot be followed", ["reason": reason])
        case .journalUnreadable(let reason): log(.error, "journal unreadable", ["reason": reason])
        case .scheduledLate(let count, let late):
            log(.notice, "scheduled actions are late", ["actions": count, "late_seconds": late / .seconds(1)])
        case .viewFailed(let reason): log(.error, "view failed", ["reason": reason])
        case .turnTookLong(let type, let count, let time):
            let microseconds = time / .microseconds(1)
            log(
                .warning, "turn took long",
                ["action.type": type, "transactions": count, "duration_us": microseconds])
        }
    }
}

/// The lines about failures of a journal, at most one in ten seconds: a full disk refuses each action, and a line for
/// each would help to fill it.
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
        let good = loss.version ?? 0
        let lost =
            if let acknowledged = loss.acknowledged, acknowledged > good {
                "versions \(good + 1) to \(acknowledged), and what came after the last record of the fence"
            } else {
                "commits that cannot be read before the history's start, or after its version"
            }
        logger.log(
            .error, "loss accepted",
            [
                "reason": loss.reason, "epoch": loss.epoch.text, "set_aside": loss.aside.joined(separator: ", "),
                "history_start": loss.start, "unreadable_key_rows": loss.unreadableKeys,
                "version": loss.version.map { "\($0)" } ?? "none", "lost": lost,
            ])
    }

    func log(_ event: ClusterEvent) {
        switch event {
        case .journal(let event): log(event)
        case .waiting(let reason): logger.log(.warning, "waiting for etcd", ["reason": reason])
        case .notFollowing(let reason?): logger.log(.warning, "not following etcd", ["reason": reason])
        case .notFollowing(nil): logger.notice("following etcd again")
        case .quotaUsed(let reason?): logger.log(.warning, "etcd's quota is used", ["reason": reason])
        case .quotaUsed(nil): logger.notice("etcd has room again")
        case .olderThanSeen:
            logger.warning(
                "the history in etcd is older than this server has seen it, as after a restore, and has a new epoch")
        case .epochRenewed(nil):
            logger.warning("the history in etcd has a new epoch; restart this server to go on with it")
        case .epochRenewed(let reason?): logger.log(.error, "no new epoch", ["reason": reason])
        case .writer(.this): logger.notice("this server writes")
        case .writer(.other(let address)): logger.log(.notice, "another server writes", ["address": address])
        case .writer(.nobody): logger.notice("no server writes")
        }
    }

    func log(_ event: JournalEvent) {
        switch event {
        case .appendFailed(let reason, let isOpen):
            guard let count = lines.withLock({ $0.fail(at: .now) }) else { return }
            let outcome = isOpen ? "unknown" : "not recorded"
            logger.log(.error, "journal failed", ["reason": reason, "outcome": outcome, "failures": count])
        case .appendsAgain:
            guard let count = lines.withLock({ $0.succeed() }) else { return }
            logger.log(.notice, "journal takes commits again", ["failures": count == 0 ? nil : count])
        case .checked(let check):
            logger.log(
                .info, "journal checked",
                [
                    "commits": check.end - check.start, "after": check.beginning, "bytes": check.segmentBytes,
                    "tables": check.isFileVerified, "duration_us": check.duration / .microseconds(1),
                ])
        case .fencePartial:
            let reason =
                "one of the two records of the fence is not whole; the other one serves, and the file is written anew"
            logger.log(.warning, "fence damaged", ["reason": reason])
        case .lossAccepted(let loss): log(loss)
        case .snapshotNotSaved(let reason): logger.log(.warning, "snapshot not saved", ["reason": reason])
        case .idsNotIndexed(let reason): logger.log(.warning, "ids not indexed", ["reason": reason])
        }
    }
}
