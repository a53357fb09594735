internal import HTTPMessages
internal import HTTPTypes
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

/// Carries out the plans of the contract: it dispatches to the store, reads, registers watches and answers.
///
/// Threads: the loop calls it with requests and expiries, the store's queue with outcomes, the hub's with deliveries.
final class RequestHandler: Sendable {
    let authenticator: Authenticator
    let contract: Contract
    let store: UntypedStore
    let journal: (any Journal)?
    let cluster: Cluster?
    let quarantine: Quarantine?
    let backups: Backups?
    let forks: Forks?
    let hooks: Hooks?
    let platform: Platform
    let logger: Logger
    let gauges: ServerGauges
    let metrics: ServerMetrics
    let isDraining = Atomic(false)
    /// Whether ``removeOrphans(tokensHaveChanged:)`` has to look at what is scheduled.
    let areOrphansDue = Atomic(true)
    private let fieldsByOrigin: [String: AddedFields]
    private let fieldsWithoutOrigin: AddedFields?
    let slowReads: SlowReads
    let bulkLoads = BulkLoads()
    /// The state of the past version that was made last: a client that goes through versions gets each from the one before.
    let lastPast = Mutex<Snapshot?>(nil)
    let statePages = StatePages()
    let begun: Instant
    private let requestNumbers: RequestNumbers
    /// The slow work before these exchanges are carried out has been done a moment ago.
    let checkedRequests = Mutex<Set<UInt64>>([])

    init(
        authenticator: Authenticator, origins: AllowedOrigins = AllowedOrigins([]), contract: Contract,
        store: UntypedStore, journal: (any Journal)?, cluster: Cluster? = nil, quarantine: Quarantine? = nil,
        backups: Backups? = nil, forks: Forks? = nil, hooks: Hooks? = nil, platform: Platform,
        gauges: ServerGauges, slowReads: SlowReads? = nil, requestNumbers: RequestNumbers = .counting,
        metrics: ServerMetrics = ServerMetrics(), logger: Logger
    ) {
        self.authenticator = authenticator
        fieldsByOrigin = Dictionary(
            origins.origins.map { ($0, AddedFields(AllowedOrigins.fields(for: $0))) }, uniquingKeysWith: { $1 })
        fieldsWithoutOrigin = origins.origins.isEmpty ? nil : AddedFields(AllowedOrigins.varying)
        self.slowReads = slowReads ?? SlowReads(metrics.settings)
        (self.contract, self.store, self.journal, self.cluster) = (contract, store, journal, cluster)
        (self.quarantine, self.backups, self.forks, self.hooks) = (quarantine, backups, forks, hooks)
        (self.platform, begun, self.requestNumbers) = (platform, platform.now(), requestNumbers)
        (self.gauges, self.metrics, self.logger) = (gauges, metrics, logger)
    }

    var hub: WatchHub { store.hub }
    var latest: Cursor { hub.latest.cursor }
    var heartbeat: Duration { .seconds(metrics.settings.heartbeatSeconds) }

    var handlers: Handlers {
        Handlers(
            receive: { self.finished(self.receive($0, $1), $1) },
            expire: { exchange, expiry in
                self.expire(exchange, expiry).map { self.finished($0, exchange.trace) }
            },
            // The loop thread runs the turn of an iteration: that takes less time than waking the store's queue.
            iterationEnded: { self.store.flushNow() },
            writable: {
                self.backups?.writable($0)
                self.hub.writable($0.map(\.id))
            },
            silent: { self.hub.silent($0.map(\.id)) },
            refuse: { self.finished(self.refuse($0, $1), $1?.trace) },
            generation: { [hub] in hub.generation },
            debugLog: { self.logger.debug("transport", metadata: ["remark": .string($0)]) })
    }

    private func receive(_ received: Request, _ exchange: Exchange) -> Reply {
        exchange.own = received.own
        var request = received
        if let origin = cluster?.origin(of: request) {
            exchange.count(toShareOf: origin)
            request = Request(request.head, request.own, body: request.body, client: origin)
        }
        if mayAddFields, let fields = addedFields(of: request) { exchange.add(fields) }
        var remembered = request.head.remembered as? RememberedHead
        if remembered?.access.hasEnded(at: platform.time()) == true { remembered = nil }
        let authentication: Authentication
        switch remembered.map({ .known(.success($0.access)) }) ?? authenticator.authenticate(request) {
        case .known(let known): authentication = known
        case .unverified(let token): return verify(token, of: request, exchange)
        }
        if case .success(let access) = authentication {
            exchange.credential = access
            if let share = access.share { exchange.count(toShareOf: share) }
            // The body of another method is not read.
            if request.body.count > Self.quickBytesMax, request.method == .post {
                return receiveLong(request, exchange, authentication)
            }
        }
        let (plan, remember) = contract.plan(
            for: request, remembered: remembered,
            in: Circumstances(bounds: hub.bounds, name: name(of: exchange), authentication: authentication))
        if let remember { request.head.remember(remember) }
        return carryOut(plan, of: request, exchange)
    }

    func endedAccess(of exchange: Exchange, within time: Duration = .zero) -> Problem? {
        let access = exchange.credential as? Access
        let hasEnded = access?.hasEnded(at: platform.time().advanced(by: time)) ?? false
        return hasEnded ? authenticator.problemOfEndedAccess : nil
    }

    private func plan(for request: Request, _ authentication: Authentication, _ exchange: Exchange) -> Plan {
        let (plan, remember) = contract.plan(
            for: request,
            in: Circumstances(bounds: hub.bounds, name: name(of: exchange), authentication: authentication))
        if let remember { request.head.remember(remember) }
        return plan
    }

    private var mayAddFields: Bool { cluster != nil || fieldsWithoutOrigin != nil }

    private func addedFields(of request: Request) -> AddedFields? {
        let stale = staleness.map { AddedFields([.stateAge: "\($0.components.seconds)"]) }
        guard let fieldsWithoutOrigin else { return stale }
        let fields = request[.origin].flatMap { fieldsByOrigin.value(named: $0) } ?? fieldsWithoutOrigin
        return stale.map { AddedFields(HTTPFields(fields.fields + $0.fields)) } ?? fields
    }

    private func verify(_ token: String, of request: Request, _ exchange: Exchange) -> Reply {
        let refuse = { @Sendable [self] (problem: Problem) in
            carryOut(plan(for: request, .failure(problem), exchange), of: request, exchange)
        }
        let isTaken = authenticator.verify(token, for: request.client) { [self] problem in
            if let problem { complete(refuse(problem), exchange) } else { exchange.resume() }
        }
        return isTaken ? .deferred : refuse(.tooManyVerifications)
    }

    /// How many times the size of a body its parsed form may have: a body of small numbers or of many short lines.
    static let parsingFactor = 12

    /// Reads a request with a long body as slow work, because the loop thread serves other clients.
    private func receiveLong(_ request: Request, _ exchange: Exchange, _ authentication: Authentication) -> Reply {
        slowly(.parse, exchange) { [self] () -> Plan in
            let bytes = Self.parsingFactor * request.body.count
            guard gauges.memory.reserve(bytes) == nil else { throw Problem.memoryExhausted }
            defer { gauges.memory.release(bytes) }
            return plan(for: request, authentication, exchange)
        } then: { [self] plan in
            carryOut(plan, of: request, exchange)
        } ?? .workingLong
    }

    private func carryOut(_ plan: Plan, of request: Request, _ exchange: Exchange) -> Reply {
        do {
            switch plan {
            case .respond(let response):
                if response.status.code >= 400 { note(response, to: exchange) }
                // A problem carries the name of its request, so other requests cannot reuse it.
                return request.method == .get && response.status == .ok ? .reusable(response) : .now(response)
            case .document(let document):
                return reading(exchange) { [contract] in contract.response(to: document) }
            case .dispatch(let dispatch):
                if let cluster, dispatch.commits, let reply = forward(dispatch, request, exchange, in: cluster) {
                    return reply
                }
                return self.dispatch(dispatch, exchange)
            case .read(let read): return self.read(read, exchange)
            case .changes(let changes): return try self.changes(changes, exchange)
            case .earlier(let changes, let before): return try earlier(changes, before: before, exchange)
            case .stream(let stream): return try self.stream(stream, exchange)
            case .entities(let request, let read): return try entities(request, read, exchange)
            case .outcome(let id, let visible, let style): return outcome(id, visible, style, exchange)
            case .schedule(let request):
                return reading(exchange) { [contract, hub] in contract.response(to: request, in: hub.latest) }
            case .live:
                return .now(Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ok\n".utf8)))
            case .ready(let isVerbose): return .now(try readiness(isVerbose: isVerbose))
            case .metrics: return .now(metricsText())
            case .operations(let style):
                return reading(exchange) { [self] in
                    let report = ServerReport(self)
                    return .json(.ok, report.operations.text, style: style, latest: report.latest.cursor)
                }
            case .forks(let request): return try carryOut(request, exchange)
            case .bisect(let request): return bisect(request, exchange)
            case .file(let name):
                if let file = Page.response(to: request, file: name, in: contract.coding(of: request)) {
                    return .now(file)
                }
                // Files need no credential, so the answer says nothing of the history.
                return .now(respond(Contract.noSuchRoute, exchange, latest: nil))
            case .backup(let access): return try backup(request, access, exchange)
            }
        } catch {
            return .now(respond(to: error, exchange))
        }
    }

    func answer(_ exchange: Exchange, _ response: consuming Response) {
        finish(&response, exchange.trace)
        exchange.answer(consume response)
    }

    func finish(_ response: inout Response, _ trace: TraceContext?) {
        if !response.problems.isEmpty { metrics.count(response.problems) }
        if let trace { response.fields[.traceParent] = trace.text }
    }

    private func finished(_ response: Response, _ trace: TraceContext?) -> Response {
        var response = response
        finish(&response, trace)
        return response
    }

    private func finished(_ reply: consuming Reply, _ exchange: Exchange) -> Reply {
        switch consume reply {
        case .now(var response):
            finish(&response, exchange.trace)
            return .now(response)
        case .reusable(var response):
            finish(&response, exchange.trace)
            // While the server is stale, the age in answers grows. The transport does not ask whether a token holds.
            let isNearEnd = endedAccess(of: exchange, within: Authenticator.reuseMargin) != nil
            return staleness == nil && !isNearEnd ? .reusable(response) : .now(response)
        case .streaming(var response, let heartbeat):
            finish(&response, exchange.trace)
            return .streaming(response, heartbeat: heartbeat)
        case .working(let time): return .working(atMost: time)
        case .workingLong: return .workingLong
        case .deferred: return .deferred
        case .waiting(let time): return .waiting(atMost: time)
        }
    }

    func name(of exchange: Exchange) -> RequestName {
        RequestName(exchange.own, number: exchange.id, requestNumbers)
    }

    func note(_ response: Response, to exchange: Exchange) {
        logger.debug(
            "refused", metadata: name(of: exchange).metadata(["status": .stringConvertible(response.status.code)]))
    }

    func respond(_ problem: Problem, _ exchange: Exchange) -> Response {
        respond(problem, exchange, latest: latest)
    }

    private func respond(_ problem: Problem, _ exchange: Exchange, latest: Cursor?) -> Response {
        closing(contract.response(to: problem, latest: latest, name: name(of: exchange)))
    }

    func respond(to error: any Error, _ exchange: Exchange) -> Response {
        if error is Fork.NoRoom { return respond(.memoryExhausted, exchange) }
        if let problem = error as? Problem ?? Problem.of(query: error) { return respond(problem, exchange) }
        logger.error("reading failed", metadata: name(of: exchange).metadata(["reason": .string("\(error)")]))
        return respond(.of(failure: error), exchange)
    }

    /// Answers a request that the loop does not hold any more; false if it goes on.
    @discardableResult
    func complete(_ reply: consuming Reply, _ exchange: Exchange) -> Bool {
        switch consume reply {
        case .now(let response):
            answer(exchange, response)
            return true
        case .reusable(let response): answer(exchange, response)
        case .working(let time):
            // The loop, which has a turn run at the end of its iteration, does not know of the transaction.
            store.flush()
            guard let time else { break }
            platform.after(time) { [self] in
                guard !exchange.isOver, let response = expire(exchange, .deadline) else { return }
                answer(exchange, response)
            }
        case .workingLong: store.flush()
        // Only a GET is deferred, waits or streams.
        default: break
        }
        return false
    }

    func closing(_ response: Response) -> Response {
        guard isDraining.load(ordering: .relaxed) else { return response }
        var response = response
        response.endsConnection = true
        return response
    }

    /// The wait, shortened at random by up to a sixteenth, so that clients that began together do not return together.
    func time(of wait: Wait) -> Duration { wait.duration * platform.random(0.9375...1) }

    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
        hub.endGeneration()
        backups?.stop()
        forks?.stop()
    }

    /// Ends every wait as if its time were up, spread over the window, so that the clients do not all return at once.
    func drain(over window: Duration) async {
        let ids = hub.watchIDs
        let parts = 10
        for part in 0..<parts {
            hub.drain(stride(from: part, to: ids.count, by: parts).map { ids[$0] })
            // A cancellation only shortens the window.
            if ids.count > parts { try? await Task.sleep(for: window / parts) }
        }
        store.drain()
    }

    private func refuse(_ problem: Problem, _ request: Request?) -> Response {
        var response = contract.response(
            to: problem, latest: authenticator.isProtected ? nil : latest,
            name: RequestName(request?.own, number: nil))
        if let added = request.flatMap(addedFields(of:)) { response.fields.append(contentsOf: added.fields) }
        return response
    }
}

extension RequestName {
    func metadata(_ others: Logger.Metadata) -> Logger.Metadata {
        var metadata = others
        metadata["request_id"] = .string(text)
        if let trace { metadata["trace_id"] = .string(trace.traceID) }
        return metadata
    }
}
