internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

extension RequestHandler {
    /// A HEAD makes no backup, so its answer has the cursor that a backup would have at least.
    func backup(_ request: Request, _ access: Access, _ exchange: Exchange, _ requestID: RequestID) -> Reply {
        guard let backups else { return .now(respond(.noJournal, requestID)) }
        guard request.method == .get else { return .now(contract.response(toBackupAt: latest)) }
        if let copy = backups.claim(exchange) {
            return .streaming(contract.response(toBackupAt: copy.cursor), heartbeat: heartbeat)
        }
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, requestID)) }
        let refusal = backups.begin(for: exchange, access) { [self] error in
            answer(exchange, respond(problem(of: error), requestID))
        }
        switch refusal {
        case .underWay?: return .now(respond(.backupUnderWay, requestID))
        case .memoryExhausted?: return .now(respond(.memoryExhausted, requestID))
        case nil: return .deferred
        }
    }

    private func problem(of error: JournalError) -> Problem {
        switch error.kind {
        case .noRoom: .noRoomForBackup
        case .damage: .journalDamaged
        case .superseded, .other: .ourFault
        }
    }
}
