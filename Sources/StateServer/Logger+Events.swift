package import Logging
internal import StateStore

extension Logger {
    /// Logs an event with its facts by name; a fact that is nil is left out.
    package func log(
        _ level: Level, _ message: Message,
        _ facts: KeyValuePairs<String, (any CustomStringConvertible & Sendable)?>
    ) {
        var metadata = Metadata()
        for case (let name, let fact?) in facts { metadata[name] = .stringConvertible(fact) }
        log(level: level, message, metadata: metadata)
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
