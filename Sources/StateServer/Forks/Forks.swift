internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// The forks of a server: stores in memory that end by themselves; any thread may call any method.
///
/// Their memory counts in the server's budget, of which they have at most half.
final class Forks: Sendable {
    static let runTimeMax = Duration.seconds(30)

    private struct Entry {
        let description: ForkDescription
        let transport: InProcessTransport
        let handler: RequestHandler
        let place: Place
        /// When the fork ends, on the clock that no operator sets.
        let end: Instant
    }

    final class Place: Sendable {
        let client: String
        private let memory: ForkMemory
        private let bytes = Atomic(0)

        fileprivate init(_ client: String, _ memory: ForkMemory) { (self.client, self.memory) = (client, memory) }

        func take(_ count: Int) -> Bool {
            guard memory.take(count) else { return false }
            bytes.add(count, ordering: .relaxed)
            return true
        }

        deinit { memory.giveBack(bytes.load(ordering: .relaxed)) }
    }

    private struct State {
        var entries: [(name: String, entry: Entry)] = []
        var making: [Place] = []
        var hasTimer = false
        var hangUps: [UInt64: @Sendable () -> Void] = [:]

        var places: [Place] { making + entries.map(\.entry.place) }
    }

    let settings: Settings
    private let memory: ForkMemory
    private let schedule: Schedule
    private let state = Mutex(State())

    init(_ settings: Settings, memory: MemoryBudget, schedule: Schedule) {
        (self.settings, self.memory, self.schedule) = (settings, ForkMemory(memory), schedule)
    }

    var countPerClientMax: Int { settings.forksMax / 2 + 1 }
    private var lifetime: Duration { .seconds(settings.forkSecondsMax) }

    var descriptions: [ForkDescription] {
        state.withLock { $0.entries.map(\.entry) }.map(Self.current)
    }

    func description(_ name: String) -> ForkDescription? { entry(name).map(Self.current) }

    func state(of name: String) -> (past: Snapshot, base: Version?)? {
        entry(name).map { ($0.handler.hub.latest, $0.description.to.version) }
    }

    private static func current(_ entry: Entry) -> ForkDescription {
        var description = entry.description
        description.latest = entry.handler.latest
        return description
    }

    private func entry(_ name: String) -> Entry? {
        state.withLock { state in state.entries.first { $0.name.utf8.elementsEqual(name.utf8) }?.entry }
    }

    func begin(for client: String) -> Result<Place, WatchRefusal> {
        state.withLock { state in
            let places = state.places
            guard places.count < settings.forksMax else { return .failure(.all) }
            guard places.count(where: { $0.client == client }) < countPerClientMax else {
                return .failure(.client)
            }
            let place = Place(client, memory)
            state.making.append(place)
            return .success(place)
        }
    }

    func abandon(_ place: Place) { state.withLock { state in state.making.removeAll { $0 === place } } }

    func add(
        _ fork: Fork, from: Cursor, to: Cursor, at place: Place, serve: (UntypedStore, _ name: String) -> RequestHandler
    ) -> ForkDescription {
        let name = "f" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let handler = serve(fork.store, name)
        let description = ForkDescription(
            name: name, from: from, to: to, latest: handler.latest,
            expiry: schedule.time().advanced(by: lifetime), fork: fork)
        let transport = InProcessTransport(handler.handlers, firstNumber: 1, after: schedule.after)
        let entry = Entry(
            description: description, transport: transport, handler: handler, place: place,
            end: schedule.now() + lifetime)
        let mustSetTimer = state.withLock { state in
            state.making.removeAll { $0 === place }
            state.entries.append((name, entry))
            return !exchange(&state.hasTimer, with: true)
        }
        if mustSetTimer { endExpired(after: lifetime) }
        return description
    }

    private func endExpired(after time: Duration) {
        schedule.after(time) { [weak self] in
            guard let self else { return }
            let now = schedule.now()
            let (expired, next) = state.withLock { state in
                let expired = state.entries.prefix { $0.entry.end <= now }.map(\.name)
                let next = state.entries.dropFirst(expired.count).first?.entry.end
                state.hasTimer = next != nil
                return (expired, next)
            }
            for name in expired { _ = remove(name) }
            if let next { endExpired(after: next - now) }
        }
    }

    func remove(_ name: String) -> Bool {
        let removed = state.withLock { state -> Entry? in
            guard let index = state.entries.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                return nil
            }
            return state.entries.remove(at: index).entry
        }
        guard let removed else { return false }
        removed.handler.beginDraining()
        removed.handler.hub.drain(removed.handler.hub.watchIDs)
        return true
    }

    func carryOut(_ request: Request, in name: String, _ exchange: Exchange) -> Bool {
        guard let entry = entry(name) else { return false }
        let inner = entry.transport.send(request) { [weak self] event in
            guard case .answer(let response) = event else { return }
            // The closure holds the fork's transport, and ends outside the lock.
            _ = self?.state.withLock { $0.hangUps.removeValue(forKey: exchange.id) }
            exchange.answer(response)
        }
        let transport = entry.transport
        state.withLock { state in
            // It may have been answered already.
            if !inner.isOver { state.hangUps[exchange.id] = { transport.hangUp(inner) } }
        }
        return true
    }

    func hangUp(_ exchange: Exchange) -> Bool {
        guard let hangUp = state.withLock({ $0.hangUps.removeValue(forKey: exchange.id) }) else { return false }
        hangUp()
        return true
    }

    func forgetViews() {
        for entry in state.withLock({ $0.entries.map(\.entry) }) { entry.handler.store.forgetViews() }
    }

    func endWatches() {
        for entry in state.withLock({ $0.entries.map(\.entry) }) { entry.handler.endWatches() }
    }

    func stop() { for (name, _) in state.withLock({ $0.entries }) { _ = remove(name) } }
}

/// The memory of all forks: at most half of the server's budget, so that requests have the rest.
private final class ForkMemory: Sendable {
    private let memory: MemoryBudget
    private let bytes = Mutex(0)

    init(_ memory: MemoryBudget) { self.memory = memory }

    func take(_ count: Int) -> Bool {
        bytes.withLock { bytes in
            guard count <= memory.bytesMax / 2 - bytes, memory.reserve(count) else { return false }
            bytes += count
            return true
        }
    }

    func giveBack(_ count: Int) {
        memory.release(count)
        bytes.withLock { $0 -= count }
    }
}

/// A fork that is made in slices of time, in turn with those of other clients; one thread after the other uses it.
final class ForkDraft: Sendable {
    private struct Progress {
        var advance: Fork.Advance?
        var time = Duration.zero
    }

    private static let slice = Duration.milliseconds(20)

    let from: Cursor
    let to: Cursor
    let place: Forks.Place
    private let timeMax: Duration
    private let begin: @Sendable () throws -> Fork.Advance
    private let progress = Mutex(Progress())

    init(
        from: Cursor, to: Cursor, place: Forks.Place, timeMax: Duration,
        begin: @escaping @Sendable () throws -> Fork.Advance
    ) {
        (self.from, self.to, self.place, self.timeMax, self.begin) = (from, to, place, timeMax, begin)
    }

    func advance(_ now: () -> Instant, isOver: () -> Bool) throws -> Fork? {
        var progress = progress.withLock { $0 }
        guard !isOver() else { return nil }
        let begun = now()
        let advance = try progress.advance ?? begin()
        let fork = try advance { now() - begun < Self.slice && !isOver() }
        progress.time += now() - begun
        guard fork != nil || progress.time <= timeMax else { throw Problem.forkTakesLong(timeMax) }
        progress.advance = advance
        self.progress.withLock { [progress] in $0 = progress }
        return fork
    }
}
