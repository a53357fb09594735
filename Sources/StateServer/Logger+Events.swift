internal import Logging
internal import StateCluster
internal import StateJournal
internal import StateStore

extension Logger {
    func log(_ record: LogRecord) {
        var metadata: Logger.Metadata = [
            "action.type": .string(record.actionType), "version": .stringConvertible(record.version),
        ]
        if record.isDryRun { metadata["dry_run"] = "true" }
        if let rejection = record.rejection { metadata["rejection"] = .string(rejection.code) }
        debug(record.rejection == nil ? "action" : "action rejected", metadata: metadata)
    }

    func log(_ event: StoreEvent) {
        switch event {
        case .followUpRefused(let refused, let root):
            warning(
                "follow-up refused",
                metadata: [
                    "action.type": .string(refused.type), "cause": .string(refused.cause),
                    "root": .string(root ?? "-"), "code": .string(refused.code), "reason": .string(refused.detail),
                ])
        case .effectFailed(let type, let reason, let cause):
            warning(
                "effect failed",
                metadata: ["action.type": .string(type), "cause": .string(cause), "reason": .string(reason)])
        case .cannotFollow(let reason): error("history cannot be followed", metadata: ["reason": .string(reason)])
        case .journalUnreadable(let reason): error("journal unreadable", metadata: ["reason": .string(reason)])
        case .scheduledLate(let count, let late):
            notice(
                "scheduled actions are late",
                metadata: [
                    "actions": .stringConvertible(count), "late_seconds": .stringConvertible(late / .seconds(1)),
                ])
        case .viewFailed(let reason): error("view failed", metadata: ["reason": .string(reason)])
        case .turnTookLong(let type, let count, let time):
            warning(
                "turn took long",
                metadata: [
                    "action.type": .string(type), "transactions": .stringConvertible(count),
                    "duration_us": .stringConvertible(time / .microseconds(1)),
                ])
        }
    }

    func log(_ loss: Loss) {
        var metadata: Metadata = [
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
        error("loss accepted", metadata: metadata)
    }

    func log(_ event: ClusterEvent) {
        switch event {
        case .appendFailed(let reason, let isOpen): log(JournalEvent.appendFailed(reason: reason, isOpen: isOpen))
        case .snapshotNotSaved(let reason): log(JournalEvent.snapshotNotSaved(reason: reason))
        case .waiting(let reason): warning("waiting for etcd", metadata: ["reason": .string(reason)])
        case .notFollowing(let reason?): warning("not following etcd", metadata: ["reason": .string(reason)])
        case .notFollowing(nil): notice("following etcd again")
        case .quotaUsed(let reason?): warning("etcd's quota is used", metadata: ["reason": .string(reason)])
        case .quotaUsed(nil): notice("etcd has room again")
        case .olderThanSeen:
            warning(
                "the history in etcd is older than this server has seen it, as after a restore, and has a new epoch")
        case .epochRenewed(nil): warning("the history in etcd has a new epoch; restart this server to go on with it")
        case .epochRenewed(let reason?): error("no new epoch", metadata: ["reason": .string(reason)])
        case .writer(.this): notice("this server writes")
        case .writer(.other(let address)): notice("another server writes", metadata: ["address": .string(address)])
        case .writer(.nobody): notice("no server writes")
        }
    }

    func log(_ event: JournalEvent) {
        switch event {
        case .appendFailed(let reason, let isOpen):
            error(
                "journal failed", metadata: ["reason": .string(reason), "outcome": isOpen ? "unknown" : "not recorded"])
        case .checked(let check):
            info(
                "journal checked",
                metadata: [
                    "commits": .stringConvertible(check.end - check.start),
                    "bytes": .stringConvertible(check.segmentBytes), "tables": .stringConvertible(check.isFileVerified),
                    "duration_us": .stringConvertible(check.duration / .microseconds(1)),
                ])
        case .fencePartial:
            warning(
                "fence damaged",
                metadata: [
                    "reason":
                        "one of the two records of the fence is not whole; the other one serves, and the file is written anew"
                ])
        case .lossAccepted(let loss): log(loss)
        case .snapshotNotSaved(let reason): warning("snapshot not saved", metadata: ["reason": .string(reason)])
        case .idsNotIndexed(let reason): warning("ids not indexed", metadata: ["reason": .string(reason)])
        }
    }
}
