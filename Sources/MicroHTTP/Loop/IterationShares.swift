/// How long the loop has worked for each client in one iteration, and which clients have had their share of it.
///
/// libmicrohttpd serves all ready connections in one run. Without a bound, a client with thousands of them makes an
/// iteration last for seconds, and a POST that is synced to the disk needs two or three iterations.
struct IterationShares {
    /// How long the loop works for one client in an iteration while others are connected.
    static let time = Duration.microseconds(250)

    private var spent: [String: Duration] = [:]
    /// The clients of which a request that was due has begun without time left.
    private var overdrawn: Set<String> = []
    /// The client that the loop works for.
    private var current: String?
    private var lastInstant: LoopInstant?

    /// Forgets what the clients have had in the last iteration.
    mutating func beginIteration() {
        guard current != nil || !spent.isEmpty else { return }
        spent.removeAll(keepingCapacity: true)
        overdrawn.removeAll(keepingCapacity: true)
        current = nil
        lastInstant = nil
    }

    /// Notes that the loop is about to begin a request of a client, or to read a piece of one, and no longer works for the one
    /// before.
    ///
    /// - Parameter isDue: whether the request has waited for its turn. One of each client begins in an iteration, also where
    ///   the bodies of others before it have taken the whole share.
    /// - Returns: whether the client has not had its share; otherwise the loop works for no client.
    mutating func begins(_ client: String, at now: LoopInstant, isDue: Bool = false) -> Bool {
        turn(to: nil, at: now)
        let hasTime = spent[client, default: .zero] < Self.time || isDue && overdrawn.insert(client).inserted
        current = hasTime ? client : nil
        return hasTime
    }

    /// Notes that the loop works for a client, whose bytes it reads, and no longer for the one before.
    mutating func works(for client: String, at now: @autoclosure () -> LoopInstant) {
        if current != client { turn(to: client, at: now()) }
    }

    /// Notes that the loop works for nobody whom it knows.
    mutating func rests(at now: @autoclosure () -> LoopInstant) {
        if current != nil { turn(to: nil, at: now()) }
    }

    /// Takes the time that so many bytes need from the share of a client: 0.5 ns each, and at most a whole share.
    mutating func sends(_ bytesCount: Int, to client: String) {
        spent[client, default: .zero] += min(.nanoseconds(bytesCount / 2), Self.time)
    }

    private mutating func turn(to client: String?, at now: LoopInstant) {
        if let current, let lastInstant { spent[current, default: .zero] += lastInstant.duration(to: now) }
        (current, lastInstant) = (client, now)
    }
}
