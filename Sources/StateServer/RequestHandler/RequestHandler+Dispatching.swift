internal import HTTPMessages
internal import HTTPTypes
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func dispatch(_ request: DispatchRequest, _ exchange: Exchange) -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, requestID(of: exchange))) }
        if let tagGuard = request.tagGuard, !tagGuard.isHidden, tagGuard.tags != .any,
            let tree = hub.latest.longTree(at: tagGuard.pointer), !tree.isTagged
        {
            if let refusal = slowReads.begin(exchange, isAbandonable: false) {
                return .now(respond(.tooManyReads(refusal), requestID(of: exchange)))
            }
            schedule.slow(.read, exchange.client) { [self] in
                _ = tree.tag
                slowReads.end(exchange)
                if let problem = endedAccess(of: exchange) {
                    return answer(exchange, respond(problem, requestID(of: exchange)))
                }
                complete(dispatchTagged(request, exchange), exchange)
                store.flush()
            }
            return .working()
        }
        return dispatchTagged(request, exchange)
    }

    /// Dispatches what guards no long value without a tag, or only one that has come since.
    private func dispatchTagged(_ request: DispatchRequest, _ exchange: Exchange) -> Reply {
        switch request.content {
        case .one(let transaction):
            if !transaction.isOfEntries, let restoration = transaction.restoration {
                return restore(restoration, transaction, of: request, exchange)
            }
            let prepared = transaction.isPreparable ? store.prepared(transaction) : transaction
            return dispatch(prepared, of: request, exchange)
        case .lines(let lines): return load(lines, of: request, exchange)
        }
    }

    func dispatch(
        _ transaction: Transaction, of request: DispatchRequest, _ exchange: Exchange
    ) -> Reply {
        guard transaction.purpose == .commit else { return dryRun(transaction, of: request, exchange) }
        if let wait = request.wait, let reply = dispatch(request, transaction, awaitingCascade: wait, exchange) {
            return reply
        }
        store.enqueue(PendingTransaction(transaction, PostedTransaction(self, request, exchange)))
        return .working()
    }

    fileprivate func take(_ outcome: Outcome, of request: DispatchRequest, _ exchange: Exchange) {
        if case .failed(let detail) = outcome { noteFailure(detail, exchange) }
        if let quarantine, quarantine.mayTry { quarantine.endTrial(of: request, isReduced: outcome.isOfReducers) }
        answer(exchange, request, outcome)
    }

    private func load(
        _ lines: [DispatchRequest.Line], of request: DispatchRequest, _ exchange: Exchange
    ) -> Reply {
        guard let outcomes = LoadOutcomes(of: lines.count, in: gauges.memory) else {
            return .now(respond(.memoryExhausted, requestID(of: exchange)))
        }
        let transactions = lines.compactMap { line in (try? line.content.get()).map(store.prepared) }
        let isLong = lines.count > Self.quickLinesMax
        let end = { @Sendable [self] (outcomes: LoadOutcomes) in
            for outcome in outcomes.all { note(outcome, exchange) }
            quarantine?.endTrial(of: request, isReduced: true)
            let latest = latest
            let write = { @Sendable [self] in
                answer(exchange, contract.response(to: lines, outcomes: outcomes.all, of: request, latest: latest))
                outcomes.release()
            }
            // The answers to many lines take long to write; this thread runs the turns.
            if isLong || outcomes.hasValues || outcomes.all.contains(where: \.lacksTag) {
                schedule.slow(.parse, exchange.client, write)
            } else {
                write()
            }
        }
        if transactions.first?.purpose == .dryRun {
            return dryRun(transactions, into: outcomes, exchange, end) ?? (isLong ? .workingLong : .working())
        }
        BulkLoad(
            transactions, of: exchange.client, into: outcomes, store: store, among: bulkLoads,
            standing: { [self] in standing(of: exchange) }
        ).run(end)
        return isLong ? .workingLong : .working()
    }

    private func dryRun(
        _ transaction: Transaction, of request: DispatchRequest, _ exchange: Exchange
    ) -> Reply {
        guard let outcomes = LoadOutcomes(of: 1, valuesBytesMax: .max, in: gauges.memory) else {
            return .now(respond(.memoryExhausted, requestID(of: exchange)))
        }
        return dryRun([transaction], into: outcomes, exchange, isWhole: true) { [self] outcomes in
            defer { outcomes.release() }
            if let problem = endedAccess(of: exchange) {
                return answer(exchange, respond(problem, requestID(of: exchange)))
            }
            guard let outcome = outcomes.all.first else { return }
            note(outcome, exchange)
            // A single dry run without its patch would say nothing.
            guard !outcomes.isFull else { return answer(exchange, respond(.memoryExhausted, requestID(of: exchange))) }
            answer(exchange, request, outcome)
        } ?? .working()
    }

    private func dryRun(
        _ transactions: [Transaction], into outcomes: LoadOutcomes, _ exchange: Exchange,
        isWhole: Bool = false, _ done: @escaping @Sendable (LoadOutcomes) -> Void
    ) -> Reply? {
        if let refusal = slowReads.begin(exchange, isAbandonable: false) {
            outcomes.release()
            return .now(respond(.tooManyReads(refusal), requestID(of: exchange)))
        }
        DryRuns(
            transactions, into: outcomes, store: store, on: schedule, for: exchange.client,
            standing: { [self] in
                isDraining.load(ordering: .relaxed) ? .refused(.draining) : standing(of: exchange, isWhole: isWhole)
            }
        ).run { [slowReads] outcomes in
            slowReads.end(exchange)
            done(outcomes)
        }
        return nil
    }

    /// Whether the rest of a request is still wanted; a client whose request `isWhole` may have finished sending.
    private func standing(of exchange: Exchange, isWhole: Bool = false) -> DryRuns.Standing {
        if exchange.isOver || !isWhole && exchange.hasHungUp { return .abandoned }
        guard endedAccess(of: exchange) != nil else { return .wanted }
        return .refused(.rejected(Rejection("token-revoked", "the token has ended since the request came"), index: 0))
    }

    /// A read queue indents a long answer and makes the tag of a long value, because this thread serves others.
    private func answer(_ exchange: Exchange, _ request: DispatchRequest, _ outcome: Outcome) {
        guard request.style == .pretty && outcome.representationBytesCount > Self.quickBytesMax || outcome.lacksTag
        else {
            let response = contract.response(to: request, outcome: outcome, latest: latest, name: name(of: exchange))
            if response.status.code >= 400 { note(response, to: exchange) }
            return answer(exchange, consume response)
        }
        let latest = latest
        schedule.slow(.read, exchange.client) { [self] in
            answer(exchange, contract.response(to: request, outcome: outcome, latest: latest, name: name(of: exchange)))
        }
    }

    /// The result is nil if the hub has no room for the watch: the wait is a preference.
    private func dispatch(
        _ request: DispatchRequest, _ transaction: Transaction, awaitingCascade wait: Wait, _ exchange: Exchange
    ) -> Reply? {
        let id = exchange.id
        let watch = Watch(
            id, client: exchange.client, receiver: self,
            request: WatchedRequest(exchange, .dispatch(request)), subject: .cascade, route: .action)
        guard hub.register(watch) == nil else { return nil }
        metrics.waitBegan(.action)
        store.enqueue(
            PendingTransaction(transaction, client: exchange.client, watcherID: id) { [self] outcome in
                note(outcome, exchange)
                quarantine?.endTrial(of: request, isReduced: outcome.isOfReducers)
                guard outcome.lacksTag else { return hub.decided(id, outcome) }
                // The answer shows the tag, which takes long to make; this thread runs the turns.
                schedule.slow(.read, exchange.client) { [hub] in
                    outcome.makeTag()
                    hub.decided(id, outcome)
                }
            } completed: { [self] report in
                // A swallowed action is answered at once, whatever its middleware has dispatched.
                guard let outcome = hub.completed(id), case .committed = outcome else { return }
                // The store forgets a complete cascade, so a replay does not know what its commit caused.
                let isForgotten = report.causedCount == 0 && outcome.isReplay
                answer(exchange, response(to: request, outcome, isForgotten ? nil : report, exchange))
            })
        return .working(atMost: time(of: wait))
    }

    func isComplete(_ exchange: Exchange) -> Bool {
        guard case .committed(let receipt)? = hub.outcome(of: exchange.id) else { return false }
        return store.cascade(of: receipt.version) == nil
    }

    func answer(to request: DispatchRequest, _ outcome: Outcome?, _ exchange: Exchange) -> Response {
        guard let outcome else { return contract.response(toUndecided: request, latest: latest) }
        guard case .committed(let receipt) = outcome else { return response(to: request, outcome, nil, exchange) }
        return response(to: request, outcome, store.cascade(of: receipt.version) ?? CascadeReport(), exchange)
    }

    private func response(
        to request: DispatchRequest, _ outcome: Outcome, _ cascade: CascadeReport?, _ exchange: Exchange
    ) -> Response {
        contract.response(to: request, outcome: outcome, cascade: cascade, latest: latest, name: name(of: exchange))
    }

    private static let quickLinesMax = 64

    private func note(_ outcome: Outcome, _ exchange: Exchange) {
        if case .failed(let detail) = outcome { noteFailure(detail, exchange) }
    }

    private func noteFailure(_ detail: String, _ exchange: Exchange) {
        logger.error("action failed", metadata: requestID(of: exchange).metadata(["reason": .string(detail)]))
    }

    func outcome(_ id: String, _ visible: VisibleStore, _ style: Style, _ exchange: Exchange, _ requestID: RequestID)
        -> Reply
    {
        let latest = latest
        let version = Cursor(text: id).flatMap { $0.epoch == latest.epoch ? $0.version : nil }
        let subjects = visible.subjectsSought
        let found =
            version.map { hub.commit(version: $0) }
            ?? subjects.lazy.compactMap { self.hub.commit(id: id, by: $0) }.first
        // Everybody knows of each version. A hidden commit by another ID is as one that is not there.
        let isKnown = { @Sendable (commit: Commit) in version != nil || visible.finding(id, commit) != nil }
        let known = found.flatMap { isKnown($0) ? $0 : nil }
        let response = { @Sendable [self] (commit: Commit?) in
            contract.response(
                toOutcomeOf: id, commit, visible, latest: self.latest, style: style, requestID: requestID)
        }
        if let known, known.weight > Self.quickBytesMax { return reading(exchange, requestID) { response(known) } }
        guard known == nil, let journal else { return .now(response(known)) }
        return reading(exchange, requestID) { [self] in
            func recorded() throws -> Commit? {
                let found = try version.map { try journal.commit(version: $0) } ?? commit(id, by: subjects, in: journal)
                return found.flatMap { isKnown($0) ? $0 : nil }
            }
            // Asked before the journal is read: the probe of another request may settle it meanwhile.
            let isOpen = journal.isOutcomeOpen
            var known = try recorded()
            if isOpen, known.map({ $0.version > self.latest.version }) ?? true {
                // The probe settles what has failed, and may find the action.
                journal.probe()
                if journal.isOutcomeOpen { return respond(.outcomeUnknown(id: id), requestID) }
                known = try recorded()
            }
            // The journal has a commit before the hub publishes it, and may yet take it back.
            if let known, known.version > self.latest.version {
                return respond(.outcomeUnknown(id: id), requestID)
            }
            return response(known)
        }
    }
}

extension RequestHandler {
    private func commit(_ id: String, by subjects: [String?], in journal: any Journal) throws -> Commit? {
        for subject in subjects {
            if let found = try journal.commit(id: id, by: subject) { return found }
        }
        return nil
    }
}

extension Outcome {
    /// Whether the reducers have decided it, so that they have done no harm.
    fileprivate var isOfReducers: Bool {
        switch self {
        case .committed, .wouldCommit, .nothingCommitted, .failed: true
        case .rejected(let rejection, _): !rejection.isQuarantine
        case .preconditionFailed, .keyReused, .full, .notRecorded, .unknown, .draining: false
        }
    }

    fileprivate var representationBytesCount: Int {
        guard case .committed(let receipt) = self else { return 0 }
        return receipt.representation?.reduce(0) { $0 + ($1.value?.count ?? 0) } ?? 0
    }

    var isReplay: Bool { if case .committed(let receipt) = self { receipt.isReplay } else { false } }
}

private final class PostedTransaction: OutcomeTaker {
    private let handler: RequestHandler
    private let request: DispatchRequest
    private let exchange: Exchange

    init(_ handler: RequestHandler, _ request: DispatchRequest, _ exchange: Exchange) {
        (self.handler, self.request, self.exchange) = (handler, request, exchange)
    }

    var client: String? { exchange.client }

    func take(_ outcome: Outcome) { handler.take(outcome, of: request, exchange) }
}
