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

/// Does what the contract decides: asks the store, looks at the board, parks, and answers.
///
/// Threads: requests and expiries come on the transport's loop thread, outcomes and publications on the store's queue,
/// what has to be read from the disk on a queue of its own.
final class Desk: Sendable {
    let contract: Contract
    let board: Board<Waiter>
    let journal: Journal?
    let logger: Logger
    private let door: StoreDoor
    private let readers = DispatchQueue(label: "storekeeper.readers", attributes: .concurrent)
    private let server = Mutex<HTTPServer?>(nil)
    private let isDraining = Atomic(false)
    let counters = Counters()

    init(contract: Contract, board: Board<Waiter>, journal: Journal?, door: StoreDoor, logger: Logger) {
        self.contract = contract
        self.board = board
        self.journal = journal
        self.door = door
        self.logger = logger
    }

    /// Names the transport that carries the answers of those who wait; nil once it has stopped.
    func attach(_ server: HTTPServer?) {
        self.server.withLock { $0 = server }
    }

    var handlers: Handlers {
        Handlers(
            receive: { self.receive($0, $1) },
            expire: { self.expire($0, $1) },
            passEnded: { self.door.flush() },
            refuse: { self.refuse($0, $1) },
            remark: { self.logger.debug("transport", metadata: ["remark": .string($0)]) })
    }

    private var position: HeadPosition {
        let (head, oldest) = board.position
        return HeadPosition(head: head, oldest: oldest)
    }

    private func receive(_ request: Request, _ exchange: Exchange) -> Reply {
        let requestID = Self.requestID(of: request, exchange)
        switch contract.answer(request, position: position, requestID: requestID) {
        case .respond(let response): return .now(response)
        case .dispatch(let dispatch): return self.dispatch(dispatch, exchange, requestID)
        case .read(let read): return self.read(read, exchange)
        case .follow(let follow): return self.follow(follow, exchange)
        case .outcome(let id, let style): return outcome(id, style, exchange, requestID)
        case .live: return .now(Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ok\n".utf8)))
        case .ready: return .now(readiness(requestID))
        case .metrics: return .now(metrics())
        }
    }

    private static func requestID(of request: Request, _ exchange: Exchange) -> String {
        guard let given = request.fields[.requestID], (1...128).contains(given.utf8.count),
            given.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return "r\(exchange.id)" }
        return given
    }

    private func respond(_ problem: Problem, _ requestID: String) -> Response {
        var response = contract.response(to: problem, head: position.head, requestID: requestID)
        if isDraining.load(ordering: .relaxed) { response.connection = .close }
        return response
    }

    private func refuse(_ fault: TransportFault, _ request: Request?) -> Response {
        let problem =
            switch fault {
            case .malformed(let detail): Problem(.badRequest, "malformed-request", detail)
            case .unsupportedTransferCoding:
                Problem(
                    .notImplemented, "transfer-coding", "a body can be chunked or have a Content-Length, nothing else")
            case .bodyTooLarge(let limit): Problem.tooLarge(limit: limit)
            case .connectionsExhausted:
                Problem(
                    .serviceUnavailable, "too-many-connections",
                    "this server has as many connections as it allows; come back in a moment",
                    fields: [.retryAfter: "1"])
            }
        return contract.response(
            to: problem, head: position.head,
            requestID: request?.fields[.requestID].map { String($0.prefix(128)) } ?? "-")
    }
}

// MARK: - Dispatching

extension Desk {
    private func dispatch(_ request: DispatchRequest, _ exchange: Exchange, _ requestID: String) -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, requestID)) }
        let submissions = request.lines.compactMap { line in try? line.content.get() }
        // Without a journal a turn is done sooner than a connection is parked.
        if submissions.count <= 1, journal == nil {
            let outcomes = submissions.map(door.submitNow)
            note(outcomes)
            return .now(
                contract.response(to: request, outcomes: outcomes, head: position.head, requestID: requestID))
        }
        submit(submissions[...], outcomes: []) { [self] outcomes in
            note(outcomes)
            exchange.answer(
                contract.response(to: request, outcomes: outcomes, head: position.head, requestID: requestID))
        }
        return .working()
    }

    /// Hands submissions over in portions, so that a bulk load leaves room in the mailbox for others.
    private func submit(
        _ submissions: ArraySlice<Submission>, outcomes: [Outcome], done: @escaping @Sendable ([Outcome]) -> Void
    ) {
        let portion = submissions.prefix(1024)
        guard !portion.isEmpty else { return done(outcomes) }
        let gathering = Gathering(count: portion.count) { [self] results in
            let rest = submissions.dropFirst(portion.count)
            guard !rest.isEmpty else { return done(outcomes + results) }
            submit(rest, outcomes: outcomes + results, done: done)
            door.flush()
        }
        for (index, submission) in portion.enumerated() {
            door.enqueue(Envelope(submission) { gathering.set(index, $0) })
        }
    }

    private func note(_ outcomes: [Outcome]) {
        for outcome in outcomes {
            switch outcome {
            case .committed(let receipt): if !receipt.isReplay { counters.commits.add(1, ordering: .relaxed) }
            case .wouldCommit: break
            case .failed(let detail):
                counters.refusals.add(1, ordering: .relaxed)
                logger.error("action failed", metadata: ["reason": .string(detail)])
            case .rejected, .preconditionFailed, .keyReused, .full, .notRecorded, .draining:
                counters.refusals.add(1, ordering: .relaxed)
            }
        }
    }

    private func outcome(_ id: String, _ style: Style, _ exchange: Exchange, _ requestID: String) -> Reply {
        let head = position.head
        let version = Cursor(text: id).flatMap { $0.epoch == head.epoch ? $0.version : nil }
        let known = version.map { board.commit(version: $0) } ?? board.commit(id: id)
        guard known == nil, let journal else {
            return .now(contract.response(toOutcomeOf: id, known, head: head, style: style, requestID: requestID))
        }
        return reading(exchange, requestID) { [self] in
            let commit = try version.map { try journal.commit(version: $0) } ?? journal.commit(id: id)
            return contract.response(toOutcomeOf: id, commit, head: head, style: style, requestID: requestID)
        }
    }

    /// Finds an answer off the loop: on the disk, or by much work.
    ///
    /// Without one, the request has been parked.
    private func reading(
        _ exchange: Exchange, _ requestID: String, _ read: @escaping @Sendable () throws -> Response?
    ) -> Reply {
        readers.async { [self] in
            do {
                if let response = try read() { exchange.answer(response) }
            } catch {
                logger.error(
                    "reading failed", metadata: ["reason": .string("\(error)"), "request_id": .string(requestID)])
                exchange.answer(respond(.ourFault, requestID))
            }
        }
        return .working()
    }
}

// MARK: - Reading

extension Desk {
    /// The server only ever shortens a wait, by up to a sixteenth: those who came together do not come back together.
    private func deadline(of wait: Wait) -> ContinuousClock.Instant {
        .now + wait.duration * Double.random(in: 0.9375...1)
    }

    private func read(_ request: ReadRequest, _ exchange: Exchange) -> Reply {
        if let version = request.version, version < position.head.version {
            return readPast(request, version, exchange)
        }
        let isDraining = isDraining.load(ordering: .acquiring)
        if let version = request.atLeast, let wait = request.wait, !isDraining {
            let parking = board.park(
                Waiter(exchange: exchange, kind: .read(request)), client: exchange.client, until: version)
            switch parking {
            case .parked: return .waiting(deadline: deadline(of: wait))
            case .refused(let share): return .now(respond(.tooManyWaiters(share), request.requestID))
            case .ready: break
            }
        }
        do {
            // A large value is put together off the loop; the next who asks finds it known.
            guard let now = try board.readQuickly(request.selection) else {
                guard request.known != nil, let wait = request.wait, !isDraining else {
                    return reading(exchange, request.requestID) { [self] in
                        contract.response(to: request, try board.read(request.selection))
                    }
                }
                _ = reading(exchange, request.requestID) { [self] in try parkOrAnswer(request, exchange) }
                return .waiting(deadline: deadline(of: wait))
            }
            guard request.known != nil, request.wait != nil, !isDraining else {
                return .now(contract.response(to: request, now))
            }
            if let response = try parkOrAnswer(request, exchange) { return .now(response) }
            return .waiting(deadline: request.wait.map(deadline))
        } catch {
            return .now(failedRead(request, error))
        }
    }

    /// The answer to a request, or nil when there is none yet and the request is parked.
    private func parkOrAnswer(_ request: ReadRequest, _ exchange: Exchange) throws -> Response? {
        if let known = request.known, request.wait != nil, !isDraining.load(ordering: .acquiring) {
            let waiter = Waiter(exchange: exchange, kind: .read(request))
            switch try board.park(waiter, client: exchange.client, at: request.selection, until: known) {
            case .parked:
                // Off the loop, the client may have gone before it was parked: then nobody else takes it out.
                if exchange.isOver { _ = board.leave(waiter) }
                return nil
            case .refused(let share): return respond(.tooManyWaiters(share), request.requestID)
            case .ready: break
            }
        }
        return contract.response(to: request, try board.read(request.selection))
    }

    private func failedRead(_ request: ReadRequest, _ error: any Error) -> Response {
        logger.error(
            "encoding failed", metadata: ["reason": .string("\(error)"), "request_id": .string(request.requestID)])
        return respond(.ourFault, request.requestID)
    }

    /// Answers a request that has waited with what is there now.
    private func answerNow(_ request: ReadRequest) -> Response {
        if let version = request.atLeast, position.head.version < version {
            return contract.aheadOfHead(request, head: position.head)
        }
        do {
            return contract.response(to: request, try board.read(request.selection))
        } catch {
            return failedRead(request, error)
        }
    }

    private func readPast(_ request: ReadRequest, _ version: Version, _ exchange: Exchange) -> Reply {
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
}

// MARK: - Following

extension Desk {
    private func follow(_ request: FollowRequest, _ exchange: Exchange) -> Reply {
        let position = position
        let since: Version
        switch request.since {
        case .now:
            let page = ChangesPage(commits: [], next: position.head.version, isMore: false, head: position.head)
            return .now(contract.response(to: request, page))
        case .oldest: since = position.oldest
        case .cursor(let cursor):
            guard cursor.epoch == position.head.epoch else { return lostReply(.lost, request, exchange) }
            since = cursor.version
        }
        let mayWait = request.wait != nil && !isDraining.load(ordering: .acquiring)
        let waiter = mayWait ? Waiter(exchange: exchange, kind: .follow(request)) : nil
        switch board.follow(request.query(since: since), as: waiter, client: exchange.client) {
        case .page(let page): return .now(contract.response(to: request, page))
        case .nothing(_, .parked):
            return .waiting(deadline: request.wait.map(deadline))
        case .nothing(_, .refused(let share)): return .now(respond(.tooManyWaiters(share), request.requestID))
        case .nothing(let head, .ready):
            return .now(
                contract.response(
                    to: request, ChangesPage(commits: [], next: head.version, isMore: false, head: head)))
        case .expired: return lostReply(.expired, request, exchange)
        case .aboveHead: return lostReply(.lost, request, exchange)
        case .inJournal(let head):
            return reading(exchange, request.requestID) { [self] in
                let query = request.query(since: since)
                let isFiltered = query.filter != ChangesFilter()
                let commits = try journal?.commits(after: since, limit: isFiltered ? 10_000 : query.limit) ?? []
                // What was there a moment ago may have been dropped since, and a damaged journal may lack a commit.
                guard !commits.isEmpty else { return lost(.expired, request) }
                return contract.response(to: request, ChangesPage(query, from: commits, head: head))
            }
        }
    }

    private func lostReply(_ code: LostCursor, _ request: FollowRequest, _ exchange: Exchange) -> Reply {
        guard request.onLost == .snapshot, board.head.weight(of: .pointer(.root)) > 1000 else { return .now(lost(code, request)) }
        return reading(exchange, request.requestID) { [self] in lost(code, request) }
    }

    private func lost(_ code: LostCursor, _ request: FollowRequest) -> Response {
        let oldest = board.oldest
        let head = board.head
        return contract.response(
            to: request, lost: code, position: HeadPosition(head: head.cursor, oldest: oldest), state: head.whole)
    }
}

// MARK: - Those who wait

extension Desk {
    /// Makes a turn's result visible and answers those who waited for it.
    ///
    /// Called on the store's queue.
    func publish(_ snapshot: Snapshot, _ commits: [Commit]) {
        for wake in board.publish(snapshot, commits) {
            switch wake {
            case .selection(_, let reading, let waiters):
                answer(waiters) { [self] kind in
                    guard case .read(let request) = kind else { return nil }
                    return contract.response(to: request, reading)
                }
            case .changes(_, let page, let waiters):
                answer(waiters) { [self] kind in
                    guard case .follow(let request) = kind else { return nil }
                    return contract.response(to: request, page)
                }
            case .version(_, let waiters):
                for waiter in waiters {
                    guard case .read(let request) = waiter.kind else { continue }
                    waiter.exchange.answer(answerNow(request))
                }
            }
        }
    }

    /// Answers many who get the same, with one encoding and one response for each way of asking.
    private func answer(_ waiters: [Waiter], _ response: (Waiter.Kind) -> Response?) {
        let server = server.withLock { $0 }
        for (_, group) in Dictionary(grouping: waiters, by: \.manner) {
            guard let first = group.first, let response = response(first.kind) else { continue }
            server?.answer(group.map(\.exchange), with: response)
        }
    }

    private func expire(_ exchange: Exchange, _ expiry: Expiry) -> Response {
        guard let (waiter, head) = board.leave(Waiter(exchange: exchange)) else {
            // Work that has outlived the grace time, or a wait that is being answered at this moment.
            return respond(.draining, "r\(exchange.id)")
        }
        return timeout(waiter, head: head)
    }

    /// The ordinary answer to a wait whose time is up.
    private func timeout(_ waiter: Waiter, head: Cursor) -> Response {
        var response =
            switch waiter.kind {
            case .read(let request): answerNow(request)
            case .follow(let request):
                contract.response(
                    to: request, ChangesPage(commits: [], next: head.version, isMore: false, head: head))
            case .unknown: respond(.draining, "-")
            }
        if isDraining.load(ordering: .relaxed) { response.connection = .close }
        return response
    }
}

extension Waiter {
    /// What makes two answers of the same content differ: problems name their request, the rest only these.
    fileprivate struct Manner: Hashable {
        let style: Style
        let applied: Int?
    }

    fileprivate var manner: Manner {
        switch kind {
        case .read(let request): Manner(style: request.style, applied: request.wait?.applied)
        case .follow(let request): Manner(style: request.style, applied: request.wait?.applied)
        case .unknown: Manner(style: .compact, applied: nil)
        }
    }
}

// MARK: - Stopping

extension Desk {
    /// Turns to stopping: not ready, no new waits, no new actions.
    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
    }

    /// Answers everybody who waits as if the time were up, spread over a short while so that they do not all come back
    /// at once, and finishes the actions that are in hand.
    func drain(over window: Duration) async {
        let (waiters, head) = board.leaveAll()
        let portions = 10
        for portion in 0..<portions {
            for index in stride(from: portion, to: waiters.count, by: portions) {
                waiters[index].exchange.answer(timeout(waiters[index], head: head))
            }
            // Being cancelled while stopping only makes it quicker.
            if waiters.count > portions { try? await Task.sleep(for: window / portions) }
        }
        door.drain()
    }

    private func readiness(_ requestID: String) -> Response {
        if isDraining.load(ordering: .relaxed) { return respond(.draining, requestID) }
        if journal?.failure != nil {
            // Nobody may send an action to a server that is not ready: it has to find out by itself that all is well again.
            readers.async { [self] in journal?.probe() }
            return respond(.notDurable, requestID)
        }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    private func metrics() -> Response {
        let statistics = server.withLock { $0?.statistics }
        let text = Metrics.text(
            counters, statistics, head: position.head.version, waiters: board.waitersCount,
            mailbox: door.waitingCount(), isDurable: journal?.failure == nil)
        return Response(status: .ok, fields: [.contentType: "text/plain; version=0.0.4"], body: Array(text.utf8))
    }
}
