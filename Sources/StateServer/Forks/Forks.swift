internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// The forks of a server, with at most half of its memory budget; any thread may call any method.
final class Forks: Sendable {
    static let runTimeMax = Duration.seconds(30)

    private struct Entry {
        let description: ForkDescription
        let transport: InProcessTransport
        let handler: RequestHandler
        let place: Place
        let end: Instant

        var current: ForkDescription {
            var description = description
            description.latest = handler.latest
            return description
        }
    }

    /// A place among the forks, with its memory: both are free again when nobody holds it any more.
    final class Place: Sendable {
        private let shares: ForkShares

        fileprivate init(_ client: String, _ shares: ForkShares, of settings: Settings) throws(Problem) {
            self.shares = shares
            let (countMax, countPerClientMax) = (settings.forksMax, settings.forksMax / 2 + 1)
            try shares.state.withLock { (state) throws(Problem) in
                guard state.places.count < countMax else { throw .tooManyForks(countMax, isOwn: false) }
                guard state.places.values.count(where: { $0.client == client }) < countPerClientMax else {
                    throw .tooManyForks(countPerClientMax, isOwn: true)
                }
                state.places[ObjectIdentifier(self)] = (client, 0)
            }
        }

        func take(_ count: Int) -> Bool {
            shares.state.withLock { state in
                guard state.places[ObjectIdentifier(self)] != nil, count <= shares.memory.bytesMax / 2 - state.bytes,
                    shares.memory.reserve(count) == nil
                else { return false }
                state.places[ObjectIdentifier(self)]?.bytes += count
                state.bytes += count
                return true
            }
        }

        /// Frees the place before an answer says that there is no fork.
        func end() {
            shares.state.withLock { state in
                guard let (_, bytes) = state.places.removeValue(forKey: ObjectIdentifier(self)) else { return }
                shares.memory.release(bytes)
                state.bytes -= bytes
            }
        }

        deinit { end() }
    }

    private struct State {
        var entries: [Entry] = []
        var hasTimer = false
        var hangUps: [UInt64: @Sendable () -> Void] = [:]
    }

    let settings: Settings
    private let shares: ForkShares
    private let platform: Platform
    private let state = Mutex(State())

    init(_ settings: Settings, memory: MemoryBudget, platform: Platform) {
        (self.settings, self.shares, self.platform) = (settings, ForkShares(memory), platform)
    }

    private var lifetime: Duration { .seconds(settings.forkSecondsMax) }

    private var entries: [Entry] { state.withLock(\.entries) }

    var descriptions: [ForkDescription] { entries.map(\.current) }

    func description(_ name: String) -> ForkDescription? { entry(name)?.current }

    func state(of name: String) -> (past: Snapshot, base: Version?)? {
        entry(name).map { ($0.handler.hub.latest, $0.description.to.version) }
    }

    private func entry(_ name: String) -> Entry? {
        entries.first { $0.description.name.utf8.elementsEqual(name.utf8) }
    }

    func begin(for client: String) throws(Problem) -> Place { try Place(client, shares, of: settings) }

    func add(
        _ fork: Fork, from: Cursor, to: Cursor, at place: Place, serve: (UntypedStore, _ name: String) -> RequestHandler
    ) -> ForkDescription {
        let name = "f" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let handler = serve(fork.store, name)
        let description = ForkDescription(
            name: name, from: from, to: to, latest: handler.latest,
            expiry: platform.time().advanced(by: lifetime), fork: fork)
        let entry = Entry(
            description: description,
            transport: InProcessTransport(handler.handlers, firstNumber: 1, after: platform.after),
            handler: handler, place: place, end: platform.now() + lifetime)
        let mustSetTimer = state.withLock { state in
            state.entries.append(entry)
            return !exchange(&state.hasTimer, with: true)
        }
        if mustSetTimer { endExpired(after: lifetime) }
        return description
    }

    private func endExpired(after time: Duration) {
        platform.after(time) { [weak self] in
            guard let self else { return }
            let now = platform.now()
            let (expired, next) = state.withLock { state in
                let expired = state.entries.prefix { $0.end <= now }.map(\.description.name)
                let next = state.entries.dropFirst(expired.count).first?.end
                state.hasTimer = next != nil
                return (expired, next)
            }
            for name in expired { _ = remove(name) }
            if let next { endExpired(after: next - now) }
        }
    }

    func remove(_ name: String) -> Bool {
        let removed = state.withLock { state in
            state.entries.firstIndex { $0.description.name.utf8.elementsEqual(name.utf8) }.map {
                state.entries.remove(at: $0)
            }
        }
        guard let handler = removed?.handler else { return false }
        handler.beginDraining()
        handler.hub.drain(handler.hub.watchIDs)
        return true
    }

    func carryOut(_ request: Request, in name: String, _ exchange: Exchange) -> Bool {
        guard let transport = entry(name)?.transport else { return false }
        let inner = transport.send(request) { [weak self] event in
            guard case .answer(let response) = event else { return }
            // The closure holds the fork's transport, and ends outside the lock.
            _ = self?.state.withLock { $0.hangUps.removeValue(forKey: exchange.id) }
            exchange.answer(response)
        }
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

    func forgetViews() { for entry in entries { entry.handler.store.forgetViews() } }

    func endWatches() { for entry in entries { entry.handler.endWatches() } }

    func stop() { for entry in entries { _ = remove(entry.description.name) } }
}

private final class ForkShares: Sendable {
    let memory: MemoryBudget
    let state = Mutex((places: [ObjectIdentifier: (client: String, bytes: Int)](), bytes: 0))

    init(_ memory: MemoryBudget) { self.memory = memory }
}
