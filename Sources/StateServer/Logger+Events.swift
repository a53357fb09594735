internal import Logging
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
}
