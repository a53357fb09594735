import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// Collects the deliveries to the watches of a test.
final class DeliveryLog: WatchReceiver {
    /// A request that only has the ID of its watch.
    final class Request: Sendable {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    private let stored = Mutex<[Delivery]>([])

    func receive(_ delivery: Delivery) { stored.withLock { $0.append(delivery) } }

    func takeAll() -> [Delivery] {
        stored.withLock { deliveries in
            defer { deliveries = [] }
            return deliveries
        }
    }
}

extension Delivery {
    /// The IDs of the watches.
    var numbers: [Int] { requests.compactMap { ($0 as? DeliveryLog.Request)?.number } }
    var reading: Reading? { if case .value(let reading) = change { reading } else { nil } }
    var page: ChangesPage? { if case .changes(let page, _) = change { page } else { nil } }
}

extension Watching {
    var name: String { "\(self)" }
}

/// A queue whose work a test runs.
final class ManualQueue: Sendable {
    private let work = Mutex<[@Sendable () -> Void]>([])

    var queues: WatchHub.Queues { .init(fanOut: { self.add($0) }, slow: { if let work = $3 { self.add(work) } }) }

    private func add(_ piece: @escaping @Sendable () -> Void) { work.withLock { $0.append(piece) } }

    func runAll() {
        while let piece = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { piece() }
    }
}

/// A hub with watches that a test registers and ends.
struct HubDriver {
    let hub: WatchHub
    let log = DeliveryLog()

    func park(
        _ number: Int, client: String, at selection: Selection, until condition: WatchCondition
    ) throws -> Watching {
        hub.watch(
            watch(number, client, .value(selection, until: condition)), seen: try hub.readQuickly(selection))
    }

    func park(_ number: Int, client: String, until version: Version) -> Watching {
        hub.watch(watch(number, client, .version(version)), until: version)
    }

    func follow(_ query: ChangesQuery, as number: Int, client: String = "") -> (Following, Watching) {
        hub.watch(watch(number, client, .changes(query)), query)
    }

    /// Ends a watch; nil where it is not registered.
    func leave(_ number: Int) -> Delivery? { hub.end(Watch.ID(number)) }

    private func watch(_ number: Int, _ client: String, _ subject: Watch.Subject) -> Watch {
        Watch(
            Watch.ID(number), client: client, receiver: log, request: DeliveryLog.Request(number), subject: subject)
    }
}

/// A core with a hub that publishes its turns on the thread of the test.
struct Published {
    private(set) var core: Core
    let watches: HubDriver
    let queue = ManualQueue()

    var hub: WatchHub { watches.hub }

    init(
        limits: StoreLimits = StoreLimits(),
        watchLimits: WatchLimits = WatchLimits(watchesMax: 100, watchesPerClientMax: 100),
        journalOldest: Version? = nil, woken: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws {
        core = try Core.sample(limits: limits)
        watches = HubDriver(
            hub: WatchHub(
                core.latest, catalogue: core.domain.catalogue, limits: limits, watchLimits: watchLimits,
                journalOldest: journalOldest, queues: queue.queues, now: { Instant(nanoseconds: 0) },
                woken: woken))
    }

    /// Commits actions in one turn and runs the hub's pass.
    @discardableResult
    mutating func commit(_ actions: any Action...) -> [Delivery] { commit(turn: actions) }

    /// Commits a turn of many actions, as ``commit(_:)`` does.
    mutating func commit(turn actions: [any Action]) -> [Delivery] {
        let turn = core.run(actions.map { .of($0) })
        hub.publish(turn.latest, turn.commits)
        queue.runAll()
        return watches.log.takeAll()
    }

    func tag(_ selection: Selection) throws -> TagSet { .tags([try #require(try hub.read(selection).encoded).tag]) }
}
