internal import Dispatch
internal import HTTPMessages
internal import HTTPTypes
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The state now, later, and as it was.
extension Desk {
    /// The server only ever shortens a wait, by up to a sixteenth: those who came together do not come back together.
    func deadline(of wait: Wait) -> ContinuousClock.Instant {
        .now + wait.duration * Double.random(in: 0.9375...1)
    }

    func read(_ request: ReadRequest, _ exchange: Exchange) -> Reply {
        if let version = request.version {
            // Also the head's: by the time it is read, another may be the head.
            return readPast(request, version, exchange)
        }
        let isDraining = isDraining.load(ordering: .acquiring)
        if let version = request.atLeast, let wait = request.wait, !isDraining {
            let parking = board.park(
                Waiter(exchange: exchange, kind: .read(request)).token, client: exchange.client, until: version)
            switch parking {
            case .parked: return .waiting(deadline: deadline(of: wait))
            case .refused(let share): return .now(respond(.tooManyWaiters(share), request.requestID))
            case .ready: break
            }
        }
        if let version = request.atLeast, position.head.version < version {
            return .now(contract.aheadOfHead(request, head: position.head))
        }
        do {
            // A large value is put together off the loop; the next who asks finds it known.
            guard let now = try board.readQuickly(request.selection) else {
                guard request.condition != nil, let wait = request.wait, !isDraining else {
                    return reading(exchange, request.requestID) { [self] in
                        contract.response(to: request, try board.read(request.selection))
                    }
                }
                preparing.withLock { $0[exchange] = request }
                let reply = reading(exchange, request.requestID) { [self] in
                    _ = try board.read(request.selection)
                    guard preparing.withLock({ $0[exchange] }) != nil else { return nil }
                    let response = try parkOrAnswer(request, exchange)
                    // In the books until it is parked, so that the end of its time always finds it: here, or on the board.
                    guard preparing.withLock({ $0.removeValue(forKey: exchange) }) != nil else {
                        board.dismiss(exchange.token)
                        return nil
                    }
                    return response
                }
                guard case .working = reply else {
                    preparing.withLock { $0[exchange] = nil }
                    return reply
                }
                return .waiting(deadline: deadline(of: wait))
            }
            guard request.condition != nil, !isDraining else {
                let response = contract.response(to: request, now)
                return now.encoded != nil && request.atLeast == nil ? .reusable(response) : .now(response)
            }
            if let response = try parkOrAnswer(request, exchange) { return .now(response) }
            return .waiting(deadline: request.wait.map(deadline))
        } catch {
            return .now(failedRead(request, error))
        }
    }

    /// The answer to a request, or nil when there is none yet and the request is parked.
    func parkOrAnswer(_ request: ReadRequest, _ exchange: Exchange) throws -> Response? {
        if let condition = request.condition, !isDraining.load(ordering: .acquiring) {
            let waiter = Waiter(exchange: exchange, kind: .read(request))
            if let share = enlistIfSettling(waiter) { return respond(.tooManyWaiters(share), request.requestID) }
            switch try board.park(waiter.token, client: exchange.client, at: request.selection, until: condition) {
            case .parked: return nil
            case .refused(let share): return respond(.tooManyWaiters(share), request.requestID)
            case .ready: if waiter.settles { board.dismiss(waiter.token) }
            }
        }
        return contract.response(to: request, try board.read(request.selection))
    }

    func failedRead(_ request: ReadRequest, _ error: any Error) -> Response {
        logger.error(
            "encoding failed", metadata: ["reason": .string("\(error)"), "request_id": .string(request.requestID)])
        return respond(.ourFault, request.requestID)
    }

    /// Answers a request that has waited with what is there now.
    func answerNow(_ request: ReadRequest) -> Response {
        if let version = request.atLeast, position.head.version < version {
            return contract.aheadOfHead(request, head: position.head)
        }
        do {
            return contract.response(to: request, try board.read(request.selection))
        } catch {
            return failedRead(request, error)
        }
    }

    func readPast(_ request: ReadRequest, _ version: Version, _ exchange: Exchange) -> Reply {
        let cursor = Cursor(position.head.epoch, version)
        let path = board.path(to: version)
        guard path != nil || journal != nil else {
            return .now(respond(.versionGone(oldest: board.oldestState), request.requestID))
        }
        return reading(exchange, request.requestID) { [self] in
            let state: [UInt8]?
            if let path {
                var value = try JSONValue(parsing: path.from.whole(), depthMax: 1000)
                for commit in path.commits { try value.apply(patch: JSONValue(parsing: commit.patch, depthMax: 1000)) }
                state = value.text
            } else {
                state = try journal?.state(at: version)
            }
            guard let state else {
                return respond(
                    .versionGone(oldest: try journal?.oldestState() ?? board.oldestState), request.requestID)
            }
            let snapshot = try door.restore(state, cursor)
            return contract.response(
                to: request, Reading(cursor: cursor, encoded: try snapshot.encoded(request.selection)))
        }
    }

    /// Finds an answer off the loop: on the disk, or by much work.
    ///
    /// Without one, the request has been parked.
    func reading(
        _ exchange: Exchange, _ requestID: String, _ read: @escaping @Sendable () throws -> Response?
    ) -> Reply {
        guard readingCount.load(ordering: .relaxed) < Self.readingMax else {
            return .now(respond(.tooManyReads, requestID))
        }
        readingCount.add(1, ordering: .relaxed)
        readers[Int(exchange.id % UInt64(readers.count))].async { [self] in
            defer { readingCount.subtract(1, ordering: .relaxed) }
            do {
                if let response = try read() { exchange.answer(response) }
            } catch {
                logger.error(
                    "reading failed", metadata: ["reason": .string("\(error)"), "request_id": .string(requestID)])
                preparing.withLock { $0[exchange] = nil }
                exchange.answer(respond(.ourFault, requestID))
            }
        }
        return .working()
    }
}
