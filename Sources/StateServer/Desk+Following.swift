internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

/// Every commit, in order.
extension Desk {
    func follow(_ request: FollowRequest, _ exchange: Exchange) -> Reply {
        let position = position
        let since: Version
        switch request.since {
        case .now:
            let page = ChangesPage(commits: [], next: position.head.version, isMore: false, head: position.head)
            return .now(contract.response(to: request, page))
        case .oldest: since = position.oldest
        case .never: return initialDifference(request, exchange)
        case .cursor(let cursor):
            guard cursor.epoch == position.head.epoch else { return lostReply(.lost, request, exchange) }
            since = cursor.version
        }
        let mayWait = request.wait != nil && !isDraining.load(ordering: .acquiring)
        let waiter = mayWait ? Waiter(exchange: exchange, kind: .follow(request)) : nil
        if let waiter, let share = enlistIfSettling(waiter) {
            return .now(respond(.tooManyWaiters(share), request.requestID))
        }
        let following = board.follow(request.query(since: since), as: waiter?.token, client: exchange.client)
        if case .nothing(_, .parked) = following {} else if let waiter, waiter.settles { board.dismiss(waiter.token) }
        switch following {
        case .page(let page): return .now(contract.response(to: request, page))
        case .nothing(_, .parked):
            return .waiting(deadline: request.wait.map(deadline))
        case .nothing(_, .refused(let share)): return .now(respond(.tooManyWaiters(share), request.requestID))
        case .nothing(let head, .ready):
            return .now(
                contract.response(
                    to: request, ChangesPage(commits: [], next: head.version, isMore: false, head: head)))
        // What was the oldest a moment ago is no longer: the client has named no cursor that could be lost.
        case .expired where request.since == .oldest: return follow(request, exchange)
        case .expired: return lostReply(.expired, request, exchange)
        case .aboveHead: return lostReply(.lost, request, exchange)
        // Where much has happened since, the whole list is the shorter answer.
        case .inJournal where request.form.isDifference: return initialDifference(request, exchange)
        case .inJournal(let head):
            return reading(exchange, request.requestID) { [self] in
                guard let page = try journal?.page(request.query(since: since), head: head) else {
                    return lost(.expired, request)
                }
                return contract.response(to: request, page)
            }
        }
    }

    /// Every entity is new to a client that has seen nothing, or whose position is gone.
    private func initialDifference(_ request: FollowRequest, _ exchange: Exchange) -> Reply {
        reading(exchange, request.requestID) { [self] in
            try contract.initialDifference(to: request, in: board.head)
        }
    }

    func lostReply(_ code: LostCursor, _ request: FollowRequest, _ exchange: Exchange) -> Reply {
        if request.form.isDifference { return initialDifference(request, exchange) }
        guard request.onLost == .snapshot else { return .now(lost(code, request)) }
        return reading(exchange, request.requestID) { [self] in lost(code, request) }
    }

    func lost(_ code: LostCursor, _ request: FollowRequest) -> Response {
        let oldest = board.oldest
        let head = board.head
        return contract.response(
            to: request, lost: code, position: HeadPosition(head: head.cursor, oldest: oldest)
        ) { try head.encoded(.pointer(request.scope.place))?.bytes ?? [] }
    }
}

extension FollowRequest.Form {
    fileprivate var isDifference: Bool { if case .difference = self { true } else { false } }
}
