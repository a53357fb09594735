internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// The forks of a server: stores in memory, each with handlers and an address of its own, that end by themselves.
///
/// They are bounded in number and life, and their memory counts in the server's budget, of which they have at most half. Any thread may call any method.
final class Forks: Sendable {
    struct Limits: Sendable {
        var countMax = 8
        var lifetime = Duration.seconds(900)
        /// How many commits one fork runs again.
        var commitsMax = 100_000
    }

    /// A fork, the handlers that serve it, and the memory that it holds.
    private struct Entry {
        let description: ForkDescription
        let transport: InProcessTransport
        let handler: RequestHandler
        let room: Room
    }

    /// The memory of all forks: at most half of the server's budget, so that requests have the rest.
    private final class Rooms: Sendable {
        let memory: MemoryBudget
        let bytes = Mutex(0)

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

    /// The memory of one fork.
    private final class Room: Sendable {
        private let rooms: Rooms
        private let bytes = Atomic(0)

        init(_ rooms: Rooms) { self.rooms = rooms }

        func take(_ count: Int) -> Bool {
            guard rooms.take(count) else { return false }
            bytes.add(count, ordering: .relaxed)
            return true
        }

        deinit { rooms.giveBack(bytes.load(ordering: .relaxed)) }
    }

    private struct State {
        var entries: [(name: String, entry: Entry)] = []
        /// The forks that are being made.
        var beginning = 0
        /// The requests that forks work on, by the number of the exchange.
        var hangUps: [UInt64: @Sendable () -> Void] = [:]
    }

    let limits: Limits
    private let rooms: Rooms
    private let schedule: Schedule
    private let state = Mutex(State())

    init(_ limits: Limits, memory: MemoryBudget, schedule: Schedule) {
        (self.limits, rooms, self.schedule) = (limits, Rooms(memory), schedule)
    }

    /// What is known of the forks, oldest first.
    var descriptions: [ForkDescription] {
        state.withLock { $0.entries.map(\.entry) }.map(Self.current)
    }

    /// What is known of a fork; nil where there is none of this name.
    func description(_ name: String) -> ForkDescription? { entry(name).map(Self.current) }

    private static func current(_ entry: Entry) -> ForkDescription {
        var description = entry.description
        description.latest = entry.handler.latest
        return description
    }

    private func entry(_ name: String) -> Entry? {
        state.withLock { state in state.entries.first { $0.name.utf8.elementsEqual(name.utf8) }?.entry }
    }

    /// Takes the place of a fork that is about to be made.
    ///
    /// - Returns: false where there are as many as there may be.
    func begin() -> Bool {
        state.withLock { state in
            guard state.entries.count + state.beginning < limits.countMax else { return false }
            state.beginning += 1
            return true
        }
    }

    /// Makes a fork, behind ``begin()``.
    ///
    /// - Parameters:
    ///   - make: makes the store, with a function that takes memory for it.
    ///   - serve: makes the handlers of a store of this name.
    func make(
        from: Cursor, to: Cursor, _ make: (_ hasRoom: @escaping @Sendable (Int) -> Bool) throws -> Fork,
        serve: (any AnyStore, _ name: String) -> RequestHandler
    ) throws -> ForkDescription {
        defer { state.withLock { $0.beginning -= 1 } }
        let room = Room(rooms)
        let fork = try make { [weak room] in room?.take($0) ?? false }
        let name = "f" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let handler = serve(fork.store, name)
        let description = ForkDescription(
            name: name, from: from, to: to, latest: handler.latest,
            expiry: schedule.time().advanced(by: limits.lifetime), fork: fork)
        let transport = InProcessTransport(handler.handlers, firstNumber: 1, after: schedule.after)
        let entry = Entry(description: description, transport: transport, handler: handler, room: room)
        state.withLock { $0.entries.append((name, entry)) }
        schedule.after(limits.lifetime) { [weak self] in _ = self?.remove(name) }
        return description
    }

    /// Ends a fork, and what its clients wait for.
    ///
    /// - Returns: false where there is none of this name.
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

    /// Has a fork answer a request.
    ///
    /// - Returns: false where there is none of this name.
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

    /// Ends what a fork works on for a client that has gone.
    ///
    /// - Returns: whether a fork worked on it.
    func hangUp(_ exchange: Exchange) -> Bool {
        guard let hangUp = state.withLock({ $0.hangUps.removeValue(forKey: exchange.id) }) else { return false }
        hangUp()
        return true
    }

    /// Ends what clients of forks wait for whose credentials have ended.
    func endWatches() {
        for entry in state.withLock({ $0.entries.map(\.entry) }) { entry.handler.endWatches() }
    }

    /// Ends all forks, because the server stops.
    func stop() { for (name, _) in state.withLock({ $0.entries }) { _ = remove(name) } }
}
