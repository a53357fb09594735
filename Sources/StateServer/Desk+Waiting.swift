internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Parked requests: woken by a publication, or by the end of their time.
extension Desk {
    /// Makes a turn's result visible and answers those who waited for it.
    ///
    /// Called on the store's queue.
    func publish(_ snapshot: Snapshot, _ commits: [Commit]) {
        for wake in board.publish(snapshot, commits) {
            switch wake {
            case .selection(_, let reading, let waiters) where reading.encoded == nil:
                // A problem names its request: each gets its own.
                for waiter in waiters {
                    guard case .read(let request) = waiter.kind else { continue }
                    waiter.exchange.answer(contract.response(to: request, reading))
                }
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
    func answer(_ waiters: [Waiter], _ response: (Waiter.Kind) -> Response?) {
        for (_, group) in Dictionary(grouping: waiters, by: \.manner) {
            guard let first = group.first, let response = response(first.kind) else { continue }
            Exchange.answer(group.map(\.exchange), with: response)
        }
    }

    func expire(_ exchange: Exchange, _ expiry: Expiry) -> Response {
        if let request = preparing.withLock({ $0.removeValue(forKey: exchange) }) {
            // Its value is still being put together; the time is up all the same.
            return timeout(Waiter(exchange: exchange, kind: .read(request)), head: position.head)
        }
        if let response = unsettled(exchange) { return response }
        guard let (waiter, head) = board.leave(Waiter(exchange: exchange)) else {
            // Work that has outlived the grace time, or a wait that is being answered at this moment.
            return respond(.draining, "r\(exchange.id)")
        }
        return timeout(waiter, head: head)
    }

    /// The ordinary answer to a wait whose time is up.
    func timeout(_ waiter: Waiter, head: Cursor) -> Response {
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
        var scope = ""
        var form = FollowRequest.Form.patches
    }

    fileprivate var manner: Manner {
        switch kind {
        case .read(let request): Manner(style: request.style, applied: request.wait?.applied, scope: request.scope.name)
        case .follow(let request):
            Manner(
                style: request.style, applied: request.wait?.applied, scope: request.scope.name, form: request.form)
        case .unknown: Manner(style: .compact, applied: nil)
        }
    }
}
