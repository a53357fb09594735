internal import Dispatch
internal import HTTPMessages
internal import HTTPTypes
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
        let wakes = board.publish(snapshot, commits)
        // Before anybody is told of the commits: who has been told reads them.
        freshness.end()
        // Telling thousands takes so long that the first can have their answers while the others are still looked up.
        if wakes.contains(where: { $0.tokens.count > Self.portion }) {
            teller.async { [self] in for wake in wakes { tell(wake) } }
        } else {
            for wake in wakes { tell(wake) }
        }
    }

    /// So many are answered at once.
    private static let portion = 512

    private func tell(_ wake: Wake) {
        for start in stride(from: 0, to: wake.tokens.count, by: Self.portion) {
            let waiters = wake.tokens[start..<min(start + Self.portion, wake.tokens.count)].map(\.parked)
            switch wake.news {
            case .selection(let reading): for group in groups(waiters) { answer(group, reading) }
            case .changes(let query, let page): for group in groups(waiters) { answer(group, page, query) }
            case .version:
                for waiter in waiters {
                    guard case .read(let request) = waiter.kind else { continue }
                    waiter.exchange.answer(answerNow(request))
                }
            }
        }
    }

    /// Those who get the same bytes.
    private func groups(_ waiters: [Waiter]) -> [[Waiter]] {
        // Mostly they are all of one kind.
        guard let manner = waiters.first?.manner, waiters.contains(where: { $0.manner != manner }) else {
            return [waiters]
        }
        return Array(Dictionary(grouping: waiters, by: \.manner).values)
    }

    private func answer(_ group: [Waiter], _ reading: Reading) {
        switch group.first?.kind {
        case .read(let request):
            if let settle = request.settle { return letPass(group.map { Burst(waiter: $0) }, settle) }
            guard reading.encoded == nil else {
                return Exchange.answer(group.map(\.exchange), with: contract.response(to: request, reading))
            }
            // A problem names its request: each gets its own.
            for waiter in group {
                guard case .read(let request) = waiter.kind else { continue }
                waiter.exchange.answer(contract.response(to: request, reading))
            }
        case .stream(let request): goOn(group.map(\.exchange), request, reading)
        case .follow, nil: break
        }
    }

    private func answer(_ group: [Waiter], _ page: ChangesPage, _ query: ChangesQuery) {
        switch group.first?.kind {
        case .follow(let request):
            if let settle = request.settle {
                return letPass(group.map { Burst(waiter: $0, page: page, query: query) }, settle)
            }
            Exchange.answer(group.map(\.exchange), with: contract.response(to: request, page))
        case .stream(let request): goOn(group.map(\.exchange), request, page)
        case .read, nil: break
        }
    }

    func expire(_ exchange: Exchange, _ expiry: Expiry) -> Response? {
        if let request = preparing.withLock({ $0.removeValue(forKey: exchange) }) {
            // Its value is still being put together; the time is up all the same.
            return timeout(Waiter(exchange: exchange, kind: .read(request)), head: position.head)
        }
        if let burst = bursts.withLock({ $0.removeValue(forKey: exchange) }) {
            board.dismiss(burst.waiter.token)
            return response(to: burst)
        }
        if endStream(exchange) { return Response(status: .ok) }
        if case .deadline = expiry, hasSettled(exchange) { return nil }
        if let response = unsettled(exchange) { return response }
        guard let (token, head) = board.leave(exchange.token) else {
            // Work that has outlived the grace time; or a wait that is being answered at this moment, with what it
            // waited for.
            if case .stopping = expiry { return respond(.draining, "r\(exchange.id)") }
            return nil
        }
        let waiter = token.parked
        if waiter.settles { board.dismiss(token) }
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
            case .stream: respond(.draining, "-")
            }
        if isDraining.load(ordering: .relaxed) { response.connection = .close }
        return response
    }
}

/// Bursts: an answer that is put off for a moment, so that what comes in this moment is in it.
extension Desk {
    /// Answers these after a while with what is there then.
    private func letPass(_ group: [Burst], _ settle: Duration) {
        bursts.withLock { bursts in for burst in group { bursts[burst.waiter.exchange] = burst } }
        later(settle) { [self] in
            for burst in group {
                let exchange = burst.waiter.exchange
                guard let burst = bursts.withLock({ $0.removeValue(forKey: exchange) }) else { continue }
                board.dismiss(burst.waiter.token)
                exchange.answer(response(to: burst))
            }
        }
    }

    /// Counts a waiter whose answer will be put off, until it has been given; nil, or why it is not taken in.
    func enlistIfSettling(_ waiter: Waiter) -> Parking.Share? {
        guard waiter.settles, case .refused(let share) = board.enlist(waiter.token, client: waiter.exchange.client)
        else {
            return nil
        }
        return share
    }

    func later(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
        let milliseconds = Int(delay / .milliseconds(1))
        readers[0].asyncAfter(deadline: .now() + .milliseconds(milliseconds), execute: work)
    }

    private func response(to burst: Burst) -> Response {
        guard case .follow(let request) = burst.waiter.kind, let page = burst.page, let query = burst.query else {
            return timeout(burst.waiter, head: position.head)
        }
        // What has come meanwhile belongs to it; where memory does not reach back any more, the rest follows.
        guard case .page(let longer) = board.follow(query) else { return contract.response(to: request, page) }
        return contract.response(to: request, longer)
    }
}

/// A waiter whose answer is put off; a follower's with the page that woke it.
struct Burst: Sendable {
    let waiter: Waiter
    var page: ChangesPage?
    var query: ChangesQuery?
}

extension Waiter {
    /// Whether its answer is put off until a burst of changes is over.
    var settles: Bool {
        switch kind {
        case .read(let request): request.settle != nil
        case .follow(let request): request.settle != nil
        case .stream: false
        }
    }
}
