import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// What a hub has delivered to the watches of a test.
final class DeliveryLog: WatchReceiver {
    /// A watch's request that says nothing but which watch it is.
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
    /// The numbers of the watches.
    var numbers: [Int] { requests.compactMap { ($0 as? DeliveryLog.Request)?.number } }
    var reading: Reading? { if case .value(let reading) = news { reading } else { nil } }
    var page: ChangesPage? { if case .changes(let page, _) = news { page } else { nil } }
}

extension Watching {
    var name: String { "\(self)" }
}

/// Work that a test runs by hand.
final class ManualQueue: Sendable {
    private let work = Mutex<[@Sendable () -> Void]>([])

    var queues: WatchHub.Queues { .init(fanOut: { self.add($0) }, encoding: { self.add($0) }) }

    private func add(_ piece: @escaping @Sendable () -> Void) { work.withLock { $0.append(piece) } }

    func runAll() {
        while let piece = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { piece() }
    }
}

/// A hub whose watches are driven from a test.
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
        let subject = Watch.Subject.changes(query.filter, limit: query.limit, weightMax: query.weightMax)
        return hub.watch(watch(number, client, subject), query)
    }

    /// Ends a watch; nil where it is not here.
    func leave(_ number: Int) -> Delivery? { hub.end(Watch.ID(number)) }

    private func watch(_ number: Int, _ client: String, _ subject: Watch.Subject) -> Watch {
        Watch(
            Watch.ID(number), client: client, receiver: log, request: DeliveryLog.Request(number), subject: subject)
    }
}

/// A core whose turns are published in a hub, one by one, on the thread of the test.
struct Published {
    private(set) var core: Core<Sample.State>
    let watches: HubDriver
    let queue = ManualQueue()

    var hub: WatchHub { watches.hub }

    init(
        limits: StoreLimits = StoreLimits(),
        watchLimits: WatchLimits = WatchLimits(watchesMax: 100, watchesPerClientMax: 100),
        journalOldest: Version? = nil
    ) throws {
        core = try Core.sample(limits: limits)
        watches = HubDriver(
            hub: WatchHub(
                core.latest, catalogue: core.model.catalogue, limits: limits, watchLimits: watchLimits,
                journalOldest: journalOldest, queues: queue.queues, now: { Instant(nanoseconds: 0) }))
    }

    /// Commits actions in one turn and lets the hub compare its watches.
    @discardableResult
    mutating func commit(_ actions: any Action...) -> [Delivery] {
        let turn = core.run(actions.map { .of($0) })
        hub.publish(turn.latest, turn.commits)
        queue.runAll()
        return watches.log.takeAll()
    }

    func tag(_ selection: Selection) throws -> TagSet { .tags([try #require(try hub.read(selection).encoded).tag]) }
}
