internal import HTTPMessages
internal import HTTPTypes
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func dispatch(_ request: DispatchRequest, _ exchange: Exchange, isTagged: Bool = false) -> Reply {
        guard isTagged || !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, exchange)) }
        if !isTagged, let tagGuard = request.tagGuard, !tagGuard.isHidden, case .tags(.tags) = tagGuard.wanted,
            let tree = hub.latest.longTree(at: tagGuard.pointer), !tree.isTagged
        {
            return slowly(.read, exchange) {
                tree.tag
            } then: { [self] _ in
                dispatch(request, exchange, isTagged: true)
            } ?? .working()
        }
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

    /// Slow work indents a long answer and makes the tag of a long value, because this thread serves others.
    fileprivate func take(_ outcome: Outcome, of request: DispatchRequest, _ exchange: Exchange) {
        if case .failed = outcome { note(outcome, exchange) }
        if let quarantine, quarantine.mayTry { quarantine.endTrial(of: request, isReduced: outcome.isOfReducers) }
        guard request.style == .pretty && outcome.representationBytesCount > Self.quickBytesMax || outcome.lacksTag
        else {
            let response = contract.response(to: request, outcome: outcome, latest: latest, name: name(of: exchange))
            if response.status.code >= 400 { note(response, to: exchange) }
            return answer(exchange, consume response)
        }
        let latest = latest
        platform.slow(.read, exchange.client) { [self] in
            answer(exchange, contract.response(to: request, outcome: outcome, latest: latest, name: name(of: exchange)))
        }
    }

    private func restore(
        _ restoration: Restoration, _ transaction: Transaction, of request: DispatchRequest, _ exchange: Exchange
    ) -> Reply {
        slowly(.past, exchange) { [self] in
            let (past, base) = try state(of: restoration.source)
            // Who names the tag of the whole state has looked at the present one.
            let hasLooked = transaction.tagGuard?.pointer == .root
            do {
                return transaction.restoring(try store.stateToRestore(like: past), ifAt: hasLooked ? nil : base)
            } catch let fault as JSONFault {
                let detail = "the state does not fit what this server serves now: at \(fault.place) \(fault.detail)"
                throw Problem(
                    .unprocessableContent, "restore-misfit", "\(detail); nothing was committed",
                    parts: [(fault.pointer.description, fault.detail)])
            }
        } then: { [self] found in
            dispatch(found, of: request, exchange)
        } ?? .working()
    }

    private func state(of source: Restoration.Source) throws -> (past: Snapshot, base: Version?) {
        switch source {
        case .version(let version):
            guard version <= latest.version else {
                let detail = "expected a version that there is; the newest is \(latest.version)"
                throw Problem(
                    .unprocessableContent, "invalid-action", "/payload/version: \(detail)",
                    parts: [("/payload/version", detail)])
            }
            return (try pastState(version), nil)
        case .fork(let name):
            guard let fork = forks?.state(of: name) else { throw Problem.noSuchFork }
            return fork
        }
    }

    private func load(
        _ lines: [DispatchRequest.Line], of request: DispatchRequest, _ exchange: Exchange
    ) -> Reply {
        guard let outcomes = LoadOutcomes(of: lines.count, in: gauges.memory) else {
            return .now(respond(.memoryExhausted, exchange))
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
                platform.slow(.parse, exchange.client, write)
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
        slowly(.dryRun, exchange) { [self] in
            let outcome =
                isDraining.load(ordering: .relaxed) ? .draining : store.dryRun(transaction, of: exchange.client)
            note(outcome, exchange)
            // The answer has the values once more; a single dry run without its patch would say nothing.
            let bytes = 2 * outcome.valuesBytesCount
            guard gauges.memory.reserve(bytes) == nil else { throw Problem.memoryExhausted }
            defer { gauges.memory.release(bytes) }
            return contract.response(to: request, outcome: outcome, latest: latest, name: name(of: exchange))
        } then: { [self] response in
            if response.status.code >= 400 { note(response, to: exchange) }
            return .now(response)
        } ?? .working()
    }

    /// Dry-runs transactions as slow work; the outcomes come to `done` in order, fewer if the client has gone.
    private func dryRun(
        _ transactions: [Transaction], into outcomes: LoadOutcomes, _ exchange: Exchange,
        _ done: @escaping @Sendable (LoadOutcomes) -> Void
    ) -> Reply? {
        if let refusal = slowReads.begin(exchange, isAbandonable: false) {
            outcomes.release()
            return .now(respond(.tooManyReads(refusal), exchange))
        }
        let progress = Mutex(LoadProgress(rest: transactions[...], outcomes: outcomes))
        @Sendable func computeNext() {
            platform.slow(.dryRun, exchange.client) { [self] in
                let draining = isDraining.load(ordering: .relaxed) ? BulkLoad.Standing.refused(.draining) : nil
                let standing = draining ?? standing(of: exchange)
                if case .wanted = standing, let next = progress.withLock({ $0.rest.popFirst() }) {
                    let outcome = store.dryRun(next, of: exchange.client)
                    progress.withLock { $0.outcomes.append(outcome) }
                } else {
                    _ = progress.withLock { $0.end(standing) }
                }
                guard let outcomes = progress.withLock({ $0.rest.isEmpty ? $0.outcomes : nil }) else {
                    return computeNext()
                }
                slowReads.end(exchange)
                done(outcomes)
            }
        }
        computeNext()
        return nil
    }

    private func standing(of exchange: Exchange) -> BulkLoad.Standing {
        if exchange.isOver || exchange.hasHungUp { return .abandoned }
        guard endedAccess(of: exchange) != nil else { return .wanted }
        return .refused(.rejected(Rejection("token-revoked", "the token has ended since the request came"), index: 0))
    }

    /// The result is nil if the hub has no room for the watch: the wait is a preference.
    private func dispatch(
        _ request: DispatchRequest, _ transaction: Transaction, awaitingCascade wait: Wait, _ exchange: Exchange
    ) -> Reply? {
        let id = exchange.id
        guard hub.register(watch(exchange, .dispatch(request), .cascade)) == nil else { return nil }
        metrics.waitBegan(.action)
        store.enqueue(
            PendingTransaction(transaction, client: exchange.client, watcherID: id) { [self] outcome in
                note(outcome, exchange)
                quarantine?.endTrial(of: request, isReduced: outcome.isOfReducers)
                guard outcome.lacksTag else { return hub.decided(id, outcome) }
                // The answer shows the tag, which takes long to make; this thread runs the turns.
                platform.slow(.read, exchange.client) { [hub] in
                    outcome.makeTag()
                    hub.decided(id, outcome)
                }
            } completed: { [self] outcome, report in
                // A swallowed action is answered at once, whatever its middleware has dispatched.
                guard hub.completed(id), case .committed = outcome else { return }
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
        guard case .failed(let detail) = outcome else { return }
        logger.error("action failed", metadata: name(of: exchange).metadata(["reason": .string(detail)]))
    }

    func outcome(_ id: String, _ visible: VisibleStore, _ style: Style, _ exchange: Exchange) -> Reply {
        let latest = latest
        let version = Cursor(text: id).flatMap { $0.epoch == latest.epoch ? $0.version : nil }
        let subjects = visible.subjectsSought
        // Everybody knows of each version. A hidden commit by another ID is as one that is not there.
        let visibleOnly = { @Sendable (commit: Commit?) in
            commit.flatMap { version != nil || visible.finding(id, $0) != nil ? $0 : nil }
        }
        let known = visibleOnly(
            version.map { hub.commit(version: $0) }
                ?? subjects.lazy.compactMap { self.hub.commit(id: id, by: $0) }.first)
        let name = name(of: exchange)
        let response = { @Sendable [self] (commit: Commit?) in
            contract.response(
                toOutcomeOf: id, commit, visible, latest: self.latest, style: style, name: name)
        }
        if let known, known.weight > Self.quickBytesMax { return reading(exchange) { response(known) } }
        guard known == nil, let journal else { return .now(response(known)) }
        return reading(exchange) { [self] in
            func recorded() throws -> Commit? {
                if let version { return visibleOnly(try journal.commit(version: version)) }
                for subject in subjects {
                    if let found = try journal.commit(id: id, by: subject) { return visibleOnly(found) }
                }
                return nil
            }
            // Asked before the journal is read: the probe of another request may settle it meanwhile.
            let isOpen = journal.isOutcomeOpen
            var known = try recorded()
            if isOpen, known.map({ $0.version > self.latest.version }) ?? true {
                // The probe settles what has failed, and may find the action.
                journal.probe()
                if journal.isOutcomeOpen { throw Problem.outcomeUnknown(id: id) }
                known = try recorded()
            }
            // The journal has a commit before the hub publishes it, and may yet take it back.
            if let known, known.version > self.latest.version { throw Problem.outcomeUnknown(id: id) }
            return response(known)
        }
    }
}

extension Outcome {
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
