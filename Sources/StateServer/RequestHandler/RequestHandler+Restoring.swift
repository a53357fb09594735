internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore

extension RequestHandler {
    func restore(
        _ restoration: Restoration, _ transaction: Transaction, of request: DispatchRequest, _ exchange: Exchange
    ) -> Reply {
        if let refusal = slowReads.begin(exchange, isAbandonable: false) {
            return .now(respond(.tooManyReads(refusal), requestID(of: exchange)))
        }
        schedule.slow(.past, exchange.client) { [self] in
            let reply: Reply
            do {
                let (past, base) = try state(of: restoration.source)
                // Who names the tag of the whole state has looked at the present one.
                let hasLooked = transaction.tagGuard?.pointer == .root
                let found = transaction.restoring(
                    try store.stateToRestore(like: past), ifAt: hasLooked ? nil : base)
                if let problem = endedAccess(of: exchange) { throw problem }
                slowReads.end(exchange)
                reply = dispatch(found, of: request, exchange)
            } catch {
                slowReads.end(exchange)
                let problem = (error as? JSONFault).map { Problem.restoreMisfit($0) } ?? error as? Problem
                reply = .now(
                    problem.map { respond($0, requestID(of: exchange)) }
                        ?? failedReading(requestID(of: exchange), error))
            }
            complete(reply, exchange)
            store.flush()
        }
        return .working()
    }

    private func state(of source: Restoration.Source) throws -> (past: Snapshot, base: Version?) {
        switch source {
        case .version(let version):
            guard version <= latest.version else { throw Problem.restoreAhead(latest: latest.version) }
            let past = try pastState(at: Cursor(latest.epoch, version), hub.path(to: version), isOver: { false })
            guard let past else {
                throw Problem.versionGone(oldest: try journal?.oldestState() ?? hub.oldestState)
            }
            return (past, nil)
        case .fork(let name):
            guard let fork = forks?.state(of: name) else { throw Problem.noSuchFork }
            return fork
        }
    }
}

extension Problem {
    fileprivate static func restoreMisfit(_ fault: JSONFault) -> Problem {
        let detail = "the state does not fit what this server serves now: at \(fault.place) \(fault.detail)"
        return Problem(
            .unprocessableContent, "restore-misfit", "\(detail); nothing was committed",
            parts: [.init(fault.pointer.description, fault.detail)])
    }

    fileprivate static func restoreAhead(latest: Version) -> Problem {
        let detail = "expected a version that there is; the newest is \(latest)"
        return Problem(
            .unprocessableContent, "invalid-action", "/payload/version: \(detail)",
            parts: [.init("/payload/version", detail)])
    }
}
