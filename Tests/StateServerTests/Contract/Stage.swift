import Dispatch
import HTTPMessages
import Logging
import MicroHTTP
import StateHTTP
import Synchronization

@testable import StateServer
@testable import StateStore
@testable import TestSupport

/// The request handler that serves sockets, behind the in-process transport, with a clock, queues and names under the
/// control of the test.
final class Stage {
    /// The settings that a transcript can make before its first request.
    struct Setting {
        var version: Version = 0
        var limits = StoreLimits()
        var contract = ContractLimits()
        var watches = WatchLimits(watchesMax: 100, watchesPerClientMax: 100)
        /// The tokens; nil where no client needs one.
        var tokens: [TokenEntry]?
        /// The actions that are set aside.
        var quarantine: Quarantine?
        /// The allowed origins.
        var origins: [String] = []
    }

    /// The events that a client has received so far.
    struct Received {
        var answer: Response?
        var isStream = false
    }

    /// The events of each client, by the number of its request.
    private final class Mail: Sendable {
        private let received = Mutex<[Int: Received]>([:])

        subscript(number: Int) -> Received? { received.withLock { $0[number] } }

        var all: [Int: Received] { received.withLock { $0 } }

        func add(_ event: InProcessTransport.Event, to number: Int) {
            received.withLock { received in
                switch event {
                case .answer(let response): received[number] = Received(answer: response)
                case .head(let response): received[number] = Received(answer: response, isStream: true)
                case .chunk(let bytes): received[number]?.answer?.body += bytes
                case .end: break
                }
            }
        }
    }

    static let epoch = Epoch("storekeeperdemoa") ?? .random()

    private let store: UntypedStore
    private let transport: InProcessTransport
    private let bulkLoads: BulkLoads
    private let platform: ManualPlatform
    private let mail = Mail()
    private var requestsCount = 0
    /// The requests whose answers the transcript has.
    private var answered: Set<Int> = []

    /// - Parameter journal: what is read where the store does not have it; the store appends nothing to it.
    init(_ setting: Setting = Setting(), journal: (any Journal)? = nil) throws {
        let model = try CompiledDomain(Demo())
        let platform = ManualPlatform()
        store = UntypedStore(
            domain: model, limits: setting.limits,
            origin: .init(state: model.initial, cursor: Cursor(Self.epoch, setting.version)),
            now: { platform.timestamp }, watchLimits: setting.watches, clock: { platform.now },
            queues: WatchHub.Queues(
                fanOut: { platform.enqueue($0) }, slow: { if let work = $3 { platform.enqueue(work) } }))
        let gauges = ServerGauges(loops: 1)
        var settings = Settings()
        (settings.connectionsMax, settings.waitersMax) = (100, setting.watches.watchesMax)
        (settings.mailboxActionsMax, settings.idempotencyKeysMax) = (10, 10)
        let handler = RequestHandler(
            authenticator: Authenticator(
                model.catalogue, tokens: setting.tokens, now: { platform.now }, date: { platform.timestamp },
                logger: Logger(label: "transcript") { _ in SwiftLogNoOpLogHandler() }),
            origins: AllowedOrigins(setting.origins),
            contract: Contract(
                catalogue: model.catalogue, limits: setting.contract, origins: AllowedOrigins(setting.origins)),
            store: store, journal: journal, quarantine: setting.quarantine,
            forks: Forks(Settings(), memory: gauges.memory, platform: platform.value),
            platform: platform.value, gauges: gauges, metrics: ServerMetrics(settings: settings),
            logger: Logger(label: "transcript") { _ in SwiftLogNoOpLogHandler() })
        bulkLoads = handler.bulkLoads
        store.beginFiring {
            true
        } judge: { [authenticator = handler.authenticator] in
            $0.isOfReducer ? nil : authenticator.rejection(of: $1, by: $0.name.by, with: $0.credential)
        }
        transport = InProcessTransport(handler.handlers, firstNumber: 1, after: platform.value.after)
        self.platform = platform
    }

    /// Sends a request, and leaves its slow work for later.
    @discardableResult
    func send(_ request: Request) -> (number: Int, exchange: Exchange) {
        requestsCount += 1
        let number = requestsCount
        return (number, transport.send(request) { [mail] in mail.add($0, to: number) })
    }

    /// Sends a request, runs all work that follows from it, and returns its answer, or nil when the request waits.
    ///
    /// The answer of a stream is what the stream has sent by then.
    func receive(_ request: Request) -> (number: Int, answer: Response?) {
        let (number, exchange) = send(request)
        run()
        guard let found = mail[number], let answer = found.answer else { return (number, nil) }
        if found.isStream { transport.hangUp(exchange) }
        answered.insert(number)
        return (number, answer)
    }

    /// The answers to waiting requests that have come since the last call, in the order in which they came.
    func takeAnswers() -> [(number: Int, Response)] {
        let answers = mail.all.filter { !answered.contains($0.key) }.compactMap { number, received in
            received.answer.map { (number: number, $0) }
        }
        answered.formUnion(answers.map(\.number))
        return answers.sorted { $0.number < $1.number }
    }

    /// Advances the clock.
    func pass(_ duration: Duration) {
        platform.pass(duration) { self.run() }
        run()
    }

    /// How many answers were made on a read queue.
    var readsCount: Int { platform.readsCount }

    /// Stops the store.
    func drain() { store.drain() }

    /// Runs the queued work of the request handler, the hub and the store until there is none.
    private func run() {
        repeat {
            store.queue.sync {}
            store.queue.sync { TurnMark(of: store.queue).with { store.dispatchDue() } }
            // The record of a refusal takes a turn of its own.
            repeat { store.queue.sync {} } while store.firing.withLock { $0?.pendingCount ?? 0 } > 0
            // A bulk load comes in batches, each behind the turns that wait.
        } while bulkLoads.count > 0 || platform.runNext()
    }
}

/// A platform that the test controls.
final class ManualPlatform: Sendable {
    private struct State {
        var elapsed = Duration.zero
        var work: [@Sendable () -> Void] = []
        var readsCount = 0
        var timers: [(due: Duration, work: @Sendable () -> Void)] = []
    }

    private let state = Mutex(State())

    var now: Instant { Instant(nanoseconds: 0) + state.withLock { $0.elapsed } }

    var readsCount: Int { state.withLock { $0.readsCount } }

    /// The time of commits, which begins at a fixed instant.
    var timestamp: Timestamp { Timestamp(milliseconds: 1_767_323_045_678).advanced(by: state.withLock { $0.elapsed }) }

    /// The platform for a request handler; a random number is always the middle of its range.
    var value: Platform {
        Platform(
            now: { self.now }, time: { self.timestamp },
            after: { delay, work in
                self.state.withLock { state in
                    if delay == .zero {
                        state.work.append(work)
                    } else {
                        state.timers.append((state.elapsed + delay, work))
                    }
                }
            },
            slowWork: { kind, _, _, work in
                if kind == .read { self.state.withLock { $0.readsCount += 1 } }
                self.enqueue(work)
            },
            random: { ($0.lowerBound + $0.upperBound) / 2 })
    }

    func enqueue(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.work.append(work) } }

    /// Runs the next work; false when there is none.
    func runNext() -> Bool {
        let work = state.withLock { $0.work.isEmpty ? nil : $0.work.removeFirst() }
        work?()
        return work != nil
    }

    /// Advances the clock and runs each timer at its time.
    func pass(_ duration: Duration, _ run: () -> Void) {
        let end = state.withLock { $0.elapsed + duration }
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
