internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateCluster
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The slow work for requests under way, with its limits in all and for each client; any thread may call any method.
final class SlowReads: Sendable {
    private struct State {
        var count = 0
        var byClient: [String: Int] = [:]
        var abandonable: Set<UInt64> = []
    }

    private let state = Mutex(State())
    private let countMax: Int
    private let countPerClientMax: Int

    init(_ settings: Settings) {
        (countMax, countPerClientMax) = (settings.slowRequestsMax, settings.slowRequestsPerClientMax)
    }

    /// Counts a read, which is abandonable if it ends when its client hangs up; nil lets it begin.
    func begin(_ exchange: Exchange, isAbandonable: Bool) -> WatchRefusal? {
        state.withLock { state in
            let count = state.byClient[exchange.client] ?? 0
            guard state.count < countMax else { return .all }
            guard count < countPerClientMax else { return .client }
            state.count += 1
            state.byClient[exchange.client] = count + 1
            if isAbandonable { state.abandonable.insert(exchange.id) }
            return nil
        }
    }

    func end(_ exchange: Exchange) {
        state.withLock { state in
            state.count -= 1
            let left = (state.byClient[exchange.client] ?? 0) - 1
            state.byClient[exchange.client] = left > 0 ? left : nil
            state.abandonable.remove(exchange.id)
        }
    }

    func isAbandonable(_ id: UInt64) -> Bool { state.withLock { $0.abandonable.contains(id) } }
}

extension RequestHandler {
    /// About the most bytes of one answer that a thread that serves others handles; ``SlowWork`` does what is longer.
    static let quickBytesMax = 64 << 10

    /// Does slow work for a request and goes on with the result; `work` that returns nil goes on behind other clients.
    func slowly<Made: Sendable>(
        _ kind: Platform.Kind, _ exchange: Exchange, of selection: Selection? = nil, isAbandonable: Bool = false,
        _ work: @escaping @Sendable () throws -> Made?, then: @escaping @Sendable (Made) -> Reply
    ) -> Reply? {
        if let refusal = slowReads.begin(exchange, isAbandonable: isAbandonable) {
            return .now(respond(.tooManyReads(refusal), exchange))
        }
        @Sendable func takeTurn() {
            platform.slow(kind, exchange.client, taking: selection.flatMap(hub.time)) { [self] in
                guard !exchange.isOver else { return slowReads.end(exchange) }
                let result = Result(catching: work)
                if case .success(nil) = result { return takeTurn() }
                // The client may ask again as soon as it has the answer, and this request then counts no more.
                slowReads.end(exchange)
                if let problem = endedAccess(of: exchange) { return answer(exchange, respond(problem, exchange)) }
                do {
                    if let made = try result.get() { complete(then(made), exchange) }
                } catch {
                    answer(exchange, respond(to: error, exchange))
                }
            }
        }
        takeTurn()
        return nil
    }

    func reading(
        _ exchange: Exchange, _ kind: Platform.Kind = .read, of selection: Selection? = nil,
        _ read: @escaping @Sendable () throws -> Response?
    ) -> Reply {
        // The loop watches the client of a request that waits, but not that of one that is being worked on.
        let mayWait = kind != .read
        return slowly(kind, exchange, of: selection, isAbandonable: mayWait) { [self] in
            try evaluating(for: exchange, read)
        } then: {
            .now($0)
        } ?? (mayWait ? .waiting() : .working())
    }

    /// Does slow work first, so that the status tells where it fails; nil means that it has been done a moment ago.
    func check(
        _ exchange: Exchange, of selection: Selection? = nil, _ work: @escaping @Sendable () throws -> Void
    ) -> Reply? {
        guard !checkedRequests.withLock({ $0.contains(exchange.id) }) else { return nil }
        return slowly(.read, exchange, of: selection) { [self] in
            try evaluating(for: exchange, work)
        } then: { [self] _ in
            checkedRequests.withLock { _ = $0.insert(exchange.id) }
            exchange.resume()
            // By then the request is carried out, or its client has gone.
            platform.after(.seconds(5)) { self.checkedRequests.withLock { _ = $0.remove(exchange.id) } }
            return .deferred
        } ?? .deferred
    }

    /// How much processor time an evaluation has whose client has closed its side: it may have only finished sending.
    private static let closedTimeMax = Duration.milliseconds(100)

    func evaluating<Value>(for exchange: Exchange, _ body: () throws -> Value) rethrows -> Value {
        var work = QueryWork()
        work.isWanted = { !exchange.isOver && ($0 < Self.closedTimeMax || !exchange.isClosedByClient) }
        (work.memory, work.client) = (ClientMemory(gauges.memory), exchange.client)
        return try QueryWork.$current.withValue(work, operation: body)
    }
}

extension Problem {
    static func of(failure error: any Error) -> Problem {
        if let fault = error as? ViewFault { return .viewFault(fault) }
        if (error as? ClusterFault)?.isPassing == true { return .historyUnreachable }
        return (error as? JournalError)?.kind == .damage ? .journalDamaged : .ourFault
    }
}

extension ClientMemory {
    init(_ budget: MemoryBudget) {
        self.init()
        count = { more, client in
            guard more > 0 else {
                budget.release(-more, for: client)
                return nil
            }
            return budget.reserve(more, for: client).map {
                $0.status == .tooManyRequests ? Refusal.client : Refusal.all
            }
        }
    }
}
