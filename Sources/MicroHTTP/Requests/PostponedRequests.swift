import Threads

/// The requests that are handled in a later iteration, because their clients have had their share of this one.
///
/// The access handler returns without an answer, and libmicrohttpd calls it again in each iteration, in an order of its own.
/// So that no connection waits for long behind others of its client, a few of them have their turn in an iteration, one
/// client after the other, and the connections of a client in the order in which they began to wait. Only the loop thread
/// uses it.
final class PostponedRequests {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    private let context: LoopContext
    private let open: OpenConnections
    @exclusivity(unchecked) private var shares = IterationShares()
    @exclusivity(unchecked) private var waiting = ClientTurns<Int32>()
    /// How many connections have their turn; `servedCount` is how many had it in the last iteration and were served.
    @exclusivity(unchecked) private var turnsCount = 0
    @exclusivity(unchecked) private var servedCount = 0
    /// Whether a connection waits for the next iteration.
    @exclusivity(unchecked) private(set) var isAny = false

    init(_ context: LoopContext, open: OpenConnections) {
        self.context = context
        self.open = open
    }

    func beginIteration() {
        if shares.isUsed { shares.beginIteration() }
        isAny = false
        // Somewhat more than the shares are enough for.
        let countMax = min(max(4, 2 * servedCount), 64)
        servedCount = 0
        while turnsCount < countMax, waiting.count > 0, let socket = waiting.next() {
            guard let connection = open[socket], connection.turn == .awaited else { continue }
            connection.turn = .come
            turnsCount += 1
        }
    }

    func works(for client: String) { if context.clients.count > 1 { shares.works(for: client, at: .now) } }

    /// Counts what libmicrohttpd does next, unseen, for others.
    func rests() { if context.clients.count > 1 { shares.rests(at: .now) } }

    /// The loop works for the client from now on where it returns false.
    func postponesPart(of client: String) -> Bool {
        guard context.clients.count > 1, !shares.begins(client, at: .now) else { return false }
        isAny = true
        return true
    }

    /// Counts a long answer in advance: libmicrohttpd may send it in the next iteration, unseen.
    func sends(_ bytesCount: Int, to client: String) {
        if context.clients.count > 1 { shares.sends(bytesCount, to: client) }
    }

    /// The loop works for the client from now on where it returns false.
    func postpones(_ connection: ClientConnection) -> Bool {
        guard context.clients.count > 1 else {
            if connection.turn != .none { forget(connection) }
            return false
        }
        let isNext = connection.turn == .come || connection.turn == .none && !waiting.hasWork(of: connection.client)
        if isNext, shares.begins(connection.client, at: .now, isDue: connection.turn == .come) {
            if connection.turn == .come { servedCount += 1 }
            forget(connection)
            return false
        }
        rests()
        isAny = true
        if connection.turn == .none {
            connection.turn = .awaited
            waiting.append(connection.descriptor, of: connection.client)
        }
        return true
    }

    func forget(_ connection: ClientConnection) {
        if connection.turn == .come { turnsCount -= 1 }
        connection.turn = .none
    }
}

/// libmicrohttpd serves all ready connections in one run: a client with thousands of them would make an iteration last
/// for seconds.
struct IterationShares {
    static let time = Duration.microseconds(250)

    private var spent: [String: Duration] = [:]
    /// Clients of which a request that was due has begun without time left.
    private var overdrawn: Set<String> = []
    private var current: String?
    private var lastInstant: LoopInstant?

    var isUsed: Bool { current != nil || !spent.isEmpty }

    mutating func beginIteration() {
        spent.removeAll(keepingCapacity: true)
        overdrawn.removeAll(keepingCapacity: true)
        current = nil
        lastInstant = nil
    }

    /// Returns false where the client has had its share; one due request of each client begins in any case.
    mutating func begins(_ client: String, at now: LoopInstant, isDue: Bool = false) -> Bool {
        turn(to: nil, at: now)
        let hasTime = spent[client, default: .zero] < Self.time || isDue && overdrawn.insert(client).inserted
        current = hasTime ? client : nil
        return hasTime
    }

    mutating func works(for client: String, at now: @autoclosure () -> LoopInstant) {
        if current != client { turn(to: client, at: now()) }
    }

    mutating func rests(at now: @autoclosure () -> LoopInstant) {
        if current != nil { turn(to: nil, at: now()) }
    }

    /// 0.5 ns each, and at most a whole share.
    mutating func sends(_ bytesCount: Int, to client: String) {
        spent[client, default: .zero] += min(.nanoseconds(bytesCount / 2), Self.time)
    }

    private mutating func turn(to client: String?, at now: LoopInstant) {
        if let current, let lastInstant { spent[current, default: .zero] += lastInstant.duration(to: now) }
        (current, lastInstant) = (client, now)
    }
}
