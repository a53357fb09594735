import HTTPMessages

/// The objects that the parts of a loop share; only the loop thread uses it.
final class LoopContext {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    let configuration: ServerConfiguration
    let handlers: Handlers
    let poller: Poller
    let memory: MemoryBudget
    let gauges: LoopGauges
    @exclusivity(unchecked) var clients = ClientCounts()
    /// How many requests have heads that were accepted and no complete answers.
    @exclusivity(unchecked) var inFlightCount = 0
    @exclusivity(unchecked) var stage = Stage.serving
    @exclusivity(unchecked) var alarms = Alarms()
    /// Nil before the start.
    @exclusivity(unchecked) var daemon: Daemon?
    @exclusivity(unchecked) private var iterationTime: LoopInstant?
    @exclusivity(unchecked) var date = HTTPDate()
    /// Whether the current iteration has done more than to look at held connections.
    @exclusivity(unchecked) var hasProgressed = false
    @exclusivity(unchecked) var hasReceived = false

    init(
        configuration: ServerConfiguration, handlers: Handlers, memory: MemoryBudget, gauges: LoopGauges
    ) throws(ServerError) {
        self.configuration = configuration
        self.handlers = handlers
        self.memory = memory
        self.gauges = gauges
        poller = try Poller()
    }

    func forget(_ client: String) {
        gauges.connections.add(-1)
        clients.remove(client)
    }

    /// Stays the same in the whole iteration, so it is behind the clock in a long one.
    func time() -> LoopInstant {
        if let iterationTime { return iterationTime }
        let now = LoopInstant.now
        iterationTime = now
        return now
    }

    func forgetTime() { iterationTime = nil }

    func setAlarm(_ subject: Alarms.Subject, after duration: Duration) { alarms.set(subject, at: time() + duration) }

    /// Refuses a long response where there is no memory for it.
    func admitted(_ response: WireResponse) -> WireResponse {
        guard response.bodyCount > MemoryBudget.smallBytesMax, memory.isExceeded else { return response }
        return WireResponse(handlers.refuse(.memoryExhausted, nil))
    }
}

/// Draining answers waits at once and lets work finish until the grace time is over; cutting leaves a moment for
/// answers that are being sent.
enum Stage {
    case serving
    case draining(until: LoopInstant)
    case cutting(until: LoopInstant)

    var isStopping: Bool { if case .serving = self { false } else { true } }

    var refusesWork: Bool { if case .cutting = self { true } else { false } }

    var deadline: LoopInstant? {
        switch self {
        case .serving: nil
        case .draining(let until), .cutting(let until): until
        }
    }
}

/// A client is an address: all that comes through a proxy is one client, and parked connections count.
///
/// Only the loop thread uses it.
struct ClientCounts {
    private var counts: [String: Int] = [:]

    var count: Int { counts.count }

    subscript(client: String) -> Int { counts[client] ?? 0 }

    mutating func add(_ client: String) { counts[client, default: 0] += 1 }

    mutating func remove(_ client: String) {
        let left = self[client] - 1
        counts[client] = left > 0 ? left : nil
    }

    /// O(n) in the number of clients; a client with a quarter of all connections gives way to one that has less than
    /// half as many, so a share binds only where connections run short.
    func largestClient(for client: String, placesCount: Int) -> String? {
        guard let most = counts.max(by: { $0.value < $1.value }), most.key != client else { return nil }
        return most.value >= max(1, placesCount / 4) && self[client] < most.value / 2 ? most.key : nil
    }
}
