import HTTPTypes
import Logging
import Synchronization

@testable import HTTPMessages
@testable import MicroHTTP
@testable import StateHTTP
@testable import StateServer
@testable import StateStore

/// The domain of the requests: values of each kind, a table, and labels whose keys and values are anything.
struct Example: Domain {
    struct State: StateType {
        var counter = Counter()
        var labels: [String: String?] = [:]
        var tasks = Tasks()
    }
    struct Counter: StateType, Codable { var value = 0 }
    struct Tasks: StateType { var table = EntityTable<Int, Task>() }
    struct Task: Codable { var title: String; var done = false; var weight: Double? }

    struct Add: Action { static let type = "counter/add"; var amount: Int }
    struct Reset: Action { static let type = "counter/reset" }
    struct AddTask: Action { static let type = "tasks/add"; var id: Int; var title: String }
    struct Weigh: Action { static let type = "tasks/weigh"; var id: Int; var weight: Double }
    struct RemoveTask: Action { static let type = "tasks/remove"; var id: Int }
    struct SetLabel: Action { static let type = "labels/set"; var key: String; var value: String? }

    var reducer: some Reducer<State> {
        Slice("counter", \.counter) {
            On(Add.self) { state, action throws(Rejection) in
                let (sum, isOver) = state.value.addingReportingOverflow(action.amount)
                guard !isOver, sum >= 0 else { throw Rejection("counter.range", "the sum is out of range") }
                state.value = sum
            }
            On(Reset.self) { state, _ in state.value = 0 }
        }
        Field("labels", \.labels)
        On(SetLabel.self) { state, action in state.labels[action.key] = .some(action.value) }
        Slice("tasks", \.tasks) {
            Entities("entities", ids: "ids", \.table)
            On(AddTask.self) { state, action in state.table[action.id] = Task(title: action.title) }
            On(Weigh.self) { state, action throws(Rejection) in
                guard state.table.contains(action.id) else { throw Rejection("tasks.unknown", "no such task") }
                state.table.update(action.id) { $0.weight = action.weight }
            }
            On(RemoveTask.self) { state, action in state.table[action.id] = nil }
            View("open", reads: ["/entities", "/ids"]) { state in state.table.filter { !$0.entity.done }.map(\.id) }
        }
    }
}

/// The request handler that serves sockets, with a clock and queues that do the same for the same input each time.
final class Stage {
    /// What one request has received: answers, and the chunks of a stream.
    struct Received {
        var answers: [Response] = []
        var chunks: [UInt8] = []
        var isStream = false
        var hasEnded = false
    }

    private final class Mail: Sendable {
        let received = Mutex<[Int: Received]>([:])
    }

    // The catalogue and the documents of the contract are the same for each input.
    private static let model = require(try? CompiledDomain(Example()), "the domain is not valid")
    private static let contract = Contract(
        catalogue: model.catalogue, hosts: AllowedHosts(listening: ["127.0.0.1"], further: ["example.com"]))
    static let epoch = require(Epoch("aaaaaaaaaaaaaaaa"), "no epoch")

    private let store: UntypedStore
    private let transport: InProcessTransport
    private let platform = Work()
    private let mail = Mail()
    private var exchanges: [Exchange] = []

    init() {
        let platform = platform
        var limits = StoreLimits()
        limits.idempotencyKeysMax = 3
        store = UntypedStore(
            domain: Self.model, limits: limits,
            origin: .init(state: Self.model.initial, cursor: Cursor(Self.epoch, 0)),
            now: { Timestamp(milliseconds: 1_767_323_045_678).advanced(by: platform.elapsed) },
            watchLimits: WatchLimits(watchesMax: 8, watchesPerClientMax: 4), clock: { platform.now },
            queues: WatchHub.Queues(fanOut: { platform.add($0) }, slow: { if let work = $3 { platform.add(work) } }))
        let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        let handler = RequestHandler(
            authenticator: Authenticator(Self.model.catalogue, tokens: nil, now: { platform.now }, logger: logger),
            contract: Self.contract, store: store, journal: nil,
            platform: Platform(
                now: { platform.now },
                time: { Timestamp(milliseconds: 1_767_323_045_678).advanced(by: platform.elapsed) },
                after: { platform.add($1, after: $0) },
                slowWork: { _, _, _, work in platform.add(work) },
                random: { $0.lowerBound }),
            gauges: ServerGauges(loops: 1), logger: logger)
        transport = InProcessTransport(handler.handlers, firstNumber: 1, after: { platform.add($1, after: $0) })
    }

    /// Sends a request and runs what follows from it; returns its number.
    func send(_ request: Request) -> Int {
        let number = exchanges.count
        mail.received.withLock { $0[number] = Received() }
        exchanges.append(
            transport.send(request) { [mail] event in
                mail.received.withLock { received in
                    switch event {
                    case .answer(let response): received[number]?.answers.append(response)
                    case .head(let response):
                        received[number]?.answers.append(response)
                        received[number]?.isStream = true
                        received[number]?.chunks += response.body
                    case .chunk(let bytes): received[number]?.chunks += bytes
                    case .end: received[number]?.hasEnded = true
                    }
                }
            })
        run()
        return number
    }

    subscript(number: Int) -> Received { mail.received.withLock { $0[number] ?? Received() } }

    func hangUp(_ number: Int) {
        transport.hangUp(exchanges[number])
        run()
    }

    /// Advances the clock past every wait and the life of every stream.
    func finish() { platform.pass(.seconds(1000)) { self.run() } }

    func drain() {
        store.drain()
        run()
    }

    private func run() {
        repeat { store.queue.sync {} } while platform.runNext()
    }
}

/// Work that runs when the stage says so, on the thread that says so.
final class Work: Sendable {
    private struct State {
        var elapsed = Duration.zero
        var work: [@Sendable () -> Void] = []
        var timers: [(due: Duration, work: @Sendable () -> Void)] = []
    }

    private let state = Mutex(State())

    var elapsed: Duration { state.withLock { $0.elapsed } }

    var now: Instant { Instant(nanoseconds: Int64(elapsed / .nanoseconds(1))) }

    func add(_ work: @escaping @Sendable () -> Void, after delay: Duration = .zero) {
        state.withLock { state in
            if delay > .zero { state.timers.append((state.elapsed + delay, work)) } else { state.work.append(work) }
        }
    }

    func runNext() -> Bool {
        let work = state.withLock { $0.work.isEmpty ? nil : $0.work.removeFirst() }
        work?()
        return work != nil
    }

    /// Advances the clock and runs each timer at its time.
    func pass(_ duration: Duration, _ run: () -> Void) {
        let end = elapsed + duration
        while let timer = next(by: end) {
            timer()
            run()
        }
        state.withLock { $0.elapsed = end }
    }

    private func next(by end: Duration) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard let index = state.timers.indices.min(by: { state.timers[$0].due < state.timers[$1].due }),
                state.timers[index].due <= end
            else { return nil }
            state.elapsed = max(state.elapsed, state.timers[index].due)
            return state.timers.remove(at: index).work
        }
    }
}
