internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// Actions to the store, outcomes back.
extension Desk {
    func dispatch(_ request: DispatchRequest, _ exchange: Exchange, _ requestID: String) -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, requestID)) }
        let answer = { @Sendable [self] (outcomes: [Outcome]) in
            note(outcomes)
            exchange.answer(
                contract.response(to: request, outcomes: outcomes, head: position.head, requestID: requestID))
        }
        switch request.content {
        case .one(let submission):
            if let wait = request.wait { return settle(request, submission, wait, exchange, requestID) }
            door.enqueue(Envelope(submission) { answer([$0]) })
        case .lines(let lines):
            submit(lines.compactMap { line in try? line.content.get() }[...], outcomes: [], done: answer)
        }
        return .working()
    }

    /// Dispatches, and answers when everything that the action causes is over or the time is up.
    private func settle(
        _ request: DispatchRequest, _ submission: Submission, _ wait: Wait, _ exchange: Exchange, _ requestID: String
    ) -> Reply {
        settling.withLock { $0[exchange] = Settling(request: request, requestID: requestID) }
        door.enqueue(
            Envelope(submission) { [self] outcome in
                note([outcome])
                settling.withLock { $0[exchange]?.outcome = outcome }
                if case .committed = outcome { return }
                answer(exchange, nil)
            } settled: { [self] report in
                // Of what was over long ago nothing is known any more: a replay does not say that it was nothing.
                let isOfBefore = report.causedCount == 0 && settling.withLock { $0[exchange]?.isReplay ?? false }
                answer(exchange, isOfBefore ? nil : report)
            })
        return .working(deadline: deadline(of: wait))
    }

    /// Answers a POST that has waited, unless that has been done.
    private func answer(_ exchange: Exchange, _ cascade: CascadeReport?) {
        guard let settling = settling.withLock({ $0.removeValue(forKey: exchange) }) else { return }
        exchange.answer(response(to: settling, cascade))
    }

    /// Whether all that a POST waits for is over, so that its answer is on its way.
    func hasSettled(_ exchange: Exchange) -> Bool {
        switch settling.withLock({ $0[exchange]?.outcome }) {
        case nil: false
        case .committed(let receipt)?: door.cascade(receipt.version) == nil
        case _?: true
        }
    }

    /// The answer to a POST whose time is up, with what has come of it so far; nil when it does not wait.
    func unsettled(_ exchange: Exchange) -> Response? {
        guard let settling = settling.withLock({ $0.removeValue(forKey: exchange) }) else { return nil }
        guard case .committed(let receipt)? = settling.outcome else {
            return contract.response(toUndecided: settling.request, head: position.head)
        }
        return response(to: settling, door.cascade(receipt.version) ?? CascadeReport())
    }

    private func response(to settling: Settling, _ cascade: CascadeReport?) -> Response {
        contract.response(
            to: settling.request, outcomes: settling.outcome.map { [$0] } ?? [], cascade: cascade, head: position.head,
            requestID: settling.requestID)
    }

    /// Hands submissions over in portions, so that a bulk load leaves room in the mailbox for others.
    func submit(
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

    func note(_ outcomes: [Outcome]) {
        for outcome in outcomes {
            switch outcome {
            case .committed(let receipt): if !receipt.isReplay { counters.commits.add(1, ordering: .relaxed) }
            case .wouldCommit, .nothingCommitted: break
            case .failed(let detail):
                counters.refusals.add(1, ordering: .relaxed)
                logger.error("action failed", metadata: ["reason": .string(detail)])
            case .rejected, .preconditionFailed, .keyReused, .full, .notRecorded, .draining:
                counters.refusals.add(1, ordering: .relaxed)
            }
        }
    }

    func outcome(_ id: String, _ scope: Scope, _ style: Style, _ exchange: Exchange, _ requestID: String) -> Reply {
        let head = position.head
        let version = Cursor(text: id).flatMap { $0.epoch == head.epoch ? $0.version : nil }
        let known = version.map { board.commit(version: $0) } ?? board.commit(id: id)
        guard known == nil, let journal else {
            return .now(
                contract.response(toOutcomeOf: id, known, scope, head: head, style: style, requestID: requestID))
        }
        return reading(exchange, requestID) { [self] in
            let found = try version.map { try journal.commit(version: $0) } ?? journal.commit(id: id)
            // The journal has a commit a moment before it is published.
            let commit = found.flatMap { $0.version <= head.version ? $0 : nil }
            return contract.response(toOutcomeOf: id, commit, scope, head: head, style: style, requestID: requestID)
        }
    }
}

/// A POST that waits for everything that it causes.
struct Settling: Sendable {
    let request: DispatchRequest
    let requestID: String
    /// What became of the action itself.
    var outcome: Outcome?

    /// Whether the action was committed by an earlier request.
    var isReplay: Bool { if case .committed(let receipt)? = outcome { receipt.isReplay } else { false } }
}
