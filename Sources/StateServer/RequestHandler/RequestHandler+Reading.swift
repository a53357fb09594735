internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateCluster
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func read(_ request: ReadRequest, _ exchange: Exchange) -> Reply {
        // The latest version goes this way, too: the next commit can make it a past version before it is read.
        if let version = request.version { return readPast(request, version, exchange) }
        let wait = isDraining.load(ordering: .acquiring) ? nil : request.wait
        if let version = request.atLeast {
            if let wait, !isStale(before: version) {
                let watch = watch(exchange, .read(request), .version(version))
                if let reply = reply(to: hub.watch(watch, until: version), watch, wait, request.requestID) {
                    return reply
                }
            }
            guard latest.version >= version else { return .now(notYet(request)) }
        }
        if request.explains {
            return reading(exchange, request.requestID, of: request.selection) { [self] in
                let snapshot = hub.latest
                let encoded = try snapshot.encoded(request.selection)
                return contract.response(to: request, Reading(cursor: snapshot.cursor, encoded: encoded))
            }
        }
        if wait != nil, let reply = evaluate(request, exchange) { return reply }
        do {
            let now = try hub.readQuickly(request.selection)
            if let wait, let condition = request.condition {
                let watch = watch(
                    exchange, .read(request), .value(request.selection, until: condition), debounce: request.debounce)
                // A long value is parsed for `until` off the loop: the hub compares it on a queue of its own.
                let seen = now.flatMap { request.until != nil && Self.isLong($0) ? nil : $0 }
                if let reply = reply(to: hub.watch(watch, seen: seen), watch, wait, request.requestID) { return reply }
            }
            guard let now else {
                return reading(exchange, request.requestID, of: request.selection) { [self] in
                    contract.response(to: request, try hub.read(request.selection))
                }
            }
            if mustWriteSlowly(request, now) {
                return reading(exchange, request.requestID) { [self] in contract.response(to: request, now) }
            }
            let response = contract.response(to: request, now)
            let isReusable = request.condition == nil && request.atLeast == nil && now.encoded != nil
            return isReusable ? .reusable(response) : .now(response)
        } catch {
            return .now(failedRead(request, error))
        }
    }

    /// The request comes again after the evaluation; nil if the answer is known, or was evaluated a moment ago.
    func evaluate(_ request: ReadRequest, _ exchange: Exchange) -> Reply? {
        guard request.selection.isQuery, !hub.isReadQuickly(request.selection) else { return nil }
        return check(exchange, request.requestID, of: request.selection) { [hub] in
            _ = try hub.read(request.selection, keeps: true)
        }
    }

    private func isStale(before version: Version) -> Bool { latest.version < version && staleness != nil }

    private func notYet(_ request: ReadRequest) -> Response {
        journal?.isShared == true
            ? respond(.behind(latest), request.requestID) : contract.aheadOfLatest(request, latest: latest)
    }

    func watch(
        _ exchange: Exchange, _ kind: WatchedRequest.Kind, _ subject: Watch.Subject, examinedVersion: Version? = nil,
        debounce: Duration? = nil
    ) -> Watch {
        Watch(
            exchange.id, client: exchange.client, receiver: self, request: WatchedRequest(exchange, kind),
            subject: subject, route: kind.route, examinedVersion: examinedVersion, debounce: debounce)
    }

    func reply(to watching: Watching, _ watch: Watch, _ wait: Wait, _ requestID: RequestID) -> Reply? {
        switch watching {
        case .parked:
            metrics.waitBegan(watch.route)
            return .waiting(atMost: time(of: wait))
        case .refused(let refusal): return .now(respond(.tooManyWaiters(refusal), requestID))
        case .ready: return nil
        }
    }

    /// The answer to a request that has waited, with the latest value, or nil if the value is over budget.
    func answerQuickly(_ request: ReadRequest) -> Response? {
        if let version = request.atLeast, latest.version < version {
            return notYet(request)
        }
        do {
            guard let reading = try hub.readQuickly(request.selection), !mustWriteSlowly(request, reading) else {
                return nil
            }
            return contract.response(to: request, reading)
        } catch {
            return failedRead(request, error)
        }
    }

    func answerNow(_ request: ReadRequest) -> Response {
        if let response = answerQuickly(request) { return response }
        do {
            return contract.response(to: request, try hub.read(request.selection))
        } catch {
            return failedRead(request, error)
        }
    }

    private func mustWriteSlowly(_ request: ReadRequest, _ reading: Reading) -> Bool {
        guard Self.isLong(reading) else { return false }
        let isKnown = request.until == nil && request.known?.contains(reading.encoded?.tag) == true
        return request.until != nil || contract.mustCompress(request, reading)
            || request.style == .pretty && !isKnown && reading.encoded?.isIndented == false
    }

    static func isLong(_ reading: Reading) -> Bool { reading.encoded?.json.count ?? 0 > quickBytesMax }

    func failedRead(_ request: ReadRequest, _ error: any Error) -> Response {
        if let problem = Problem.of(query: error) { return respond(problem, request.requestID) }
        if let fault = error as? ViewFault { return respond(.viewFault(fault), request.requestID) }
        logger.error("encoding failed", metadata: request.requestID.metadata(["reason": .string("\(error)")]))
        return respond(.ourFault, request.requestID)
    }

    private func readPast(_ request: ReadRequest, _ version: Version, _ exchange: Exchange) -> Reply {
        let cursor = Cursor(latest.epoch, version)
        let path = hub.path(to: version)
        guard path != nil || journal != nil else {
            return .now(respond(.versionGone(oldest: hub.oldestState), request.requestID))
        }
        return reading(exchange, request.requestID, .past) { [self] in
            guard let snapshot = try pastState(at: cursor, path, isOver: { exchange.isOver }) else {
                return respond(.versionGone(oldest: try journal?.oldestState() ?? hub.oldestState), request.requestID)
            }
            return contract.response(
                to: request, Reading(cursor: cursor, encoded: try snapshot.encoded(request.selection)))
        }
    }

    /// The result is nil if neither the hub nor the journal has the state.
    func pastState(
        at cursor: Cursor, _ path: (from: Snapshot, commits: [Commit])?, isOver: () -> Bool
    ) throws -> Snapshot? {
        let last = lastPast.withLock(\.self)
        if let last, last.cursor == cursor { return last }
        let saved: SavedState
        if let path {
            let versions = path.from.cursor.version...cursor.version
            let near = last.flatMap { versions.contains($0.cursor.version) ? $0 : nil } ?? path.from
            var followed = PatchedState(
                try JSONValue(parsing: near.whole(), depthMax: 1000), version: near.cursor.version,
                schedule: near.schedule)
            for commit in path.commits.dropFirst(Int(near.cursor.version - path.from.cursor.version)) {
                // The client may have gone meanwhile.
                guard !isOver() else { return path.from }
                _ = try followed.take(commit)
            }
            saved = followed.saved
        } else {
            guard let found = try journal?.state(at: cursor.version) else { return nil }
            saved = found
        }
        let snapshot = try store.snapshot(restoring: saved, at: cursor)
        // A state takes up to eight times as much memory as its JSON.
        if saved.state.count <= gauges.memory.bytesMax / 16 { _ = lastPast.withLock { exchange(&$0, with: snapshot) } }
        return snapshot
    }

    /// About the most bytes of one answer that a thread that serves others handles; ``SlowWork`` does what is longer.
    static let quickBytesMax = 64 << 10

    /// Reads on a thread of slow work; nil is for a read that goes on when other clients have had their turn.
    func reading(
        _ exchange: Exchange, _ requestID: RequestID, _ kind: Schedule.Kind = .read, of selection: Selection? = nil,
        _ read: @escaping @Sendable () throws -> Response?
    ) -> Reply {
        if let refusal = slowReads.begin(exchange, isAbandonable: kind == .past) {
            return .now(respond(.tooManyReads(refusal), requestID))
        }
        @Sendable func takeTurn() {
            schedule.slow(kind, exchange.client, taking: selection.flatMap(hub.time)) { [self] in
                // The client may have gone.
                guard !exchange.isOver else { return slowReads.end(exchange) }
                let response: Response?
                do {
                    response = try evaluating(for: exchange, read)
                } catch {
                    response = failedReading(requestID, error)
                }
                guard let response else { return takeTurn() }
                // The client may ask again as soon as it has the answer, and this request then counts no more.
                slowReads.end(exchange)
                answer(exchange, endedAccess(of: exchange).map { respond($0, requestID) } ?? response)
            }
        }
        takeTurn()
        // The loop watches the client of a request that waits, but not that of one that is being worked on.
        return kind == .past ? .waiting() : .working()
    }

    /// How much processor time an evaluation has whose client has closed its side: it may have only finished sending.
    private static let closedTimeMax = Duration.milliseconds(100)

    func evaluating<Value>(for exchange: Exchange, _ body: () throws -> Value) rethrows -> Value {
        var work = QueryWork()
        work.isWanted = { !exchange.isOver && ($0 < Self.closedTimeMax || !exchange.isClosedByClient) }
        (work.memory, work.client) = (ClientMemory(gauges.memory), exchange.client)
        return try QueryWork.$current.withValue(work, operation: body)
    }

    func failedReading(_ requestID: RequestID, _ error: any Error) -> Response {
        if let problem = Problem.of(query: error) { return respond(problem, requestID) }
        logger.error("reading failed", metadata: requestID.metadata(["reason": .string("\(error)")]))
        return respond(.of(reading: error), requestID)
    }
}

extension Problem {
    static func of(reading error: any Error) -> Problem {
        if let fault = error as? ViewFault { return .viewFault(fault) }
        if (error as? ClusterFault)?.isPassing == true { return .historyUnreachable }
        return (error as? Problem) ?? ((error as? JournalError)?.kind == .damage ? .journalDamaged : .ourFault)
    }
}
