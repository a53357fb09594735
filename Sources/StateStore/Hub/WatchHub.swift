internal import Dispatch
internal import StateJSON
internal import Synchronization

/// The published snapshot of a store, its recent history, and all watches, for any thread.
///
/// The hub examines the history and parks a watch in one step under its lock, so a watch misses no commit. A turn
/// publishes at a cost of O(n) in its changed pointers; the watches are compared on the fan-out queue.
package final class WatchHub: Sendable {
    let storage: Mutex<HubStorage>
    private let generationCount = Atomic<UInt64>(0)
    let queues: Queues
    let now: @Sendable () -> Instant
    let processorTime: @Sendable () -> Instant
    let woken: @Sendable (Int) -> Void

    /// The queues run work later: none may run it before it returns.
    package struct Queues: Sendable {
        /// Runs the passes that compare the watches with the published snapshot, one after the other.
        package var fanOut: @Sendable (@escaping @Sendable () -> Void) -> Void
        /// Runs what a pass has no time for: evaluations and encodings, in turn by client, as ``SlowWork`` does; without work,
        /// it gives a client the next turn only.
        package var slow: Slow

        package typealias Slow =
            @Sendable (
                _ client: String, _ time: Duration?, _ isFirst: Bool, _ work: (@Sendable () -> Void)?
            ) -> Void

        /// A serial dispatch queue for the passes, and threads for slow work; nil makes some.
        package static func dispatch(slow: Slow? = nil) -> Queues {
            let (fanOut, work) = (DispatchQueue(label: "storekeeper.fan-out"), SlowWork(width: 1))
            return Queues(
                fanOut: { fanOut.async(execute: $0) },
                slow: slow ?? { work.run(for: $0, taking: $1, isFirst: $2, $3) })
        }
    }

    init(
        _ latest: Snapshot, catalogue: Catalogue, limits: StoreLimits, watchLimits: WatchLimits,
        journalOldest: Version?, queues: Queues, now: @escaping @Sendable () -> Instant,
        processorTime: @escaping @Sendable () -> Instant = { Instant(nanoseconds: 0) },
        woken: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.queues = queues
        (self.now, self.processorTime) = (now, processorTime)
        self.woken = woken
        storage = Mutex(
            HubStorage(
                latest: latest, catalogue: catalogue,
                history: History(
                    beginningWith: latest, countMax: limits.historyCommitsMax, weightMax: limits.historyBytesMax),
                limits: watchLimits, journalOldest: journalOldest))
    }

    // MARK: The published snapshot

    package var latest: Snapshot { storage.withLock { $0.latest } }

    package var bounds: HistoryBounds {
        storage.withLock { HistoryBounds(latest: $0.latest.cursor, oldest: $0.oldest) }
    }

    /// The generation of the published snapshot: it rises before any answer about that snapshot changes.
    package var generation: UInt64 { generationCount.load(ordering: .acquiring) }

    package func endGeneration() { generationCount.add(1, ordering: .acquiringAndReleasing) }

    package var watchesCount: Int { storage.withLock { $0.watches.count } }

    package var figures: HubFigures { storage.withLock { $0.figures } }

    /// O(n) in the size of the value, and one dictionary access where the encoding is cached.
    ///
    /// `keeps` is for a query that is to be watched.
    package func read(_ selection: Selection, keeps: Bool = false) throws -> Reading {
        let (latest, known) = storage.withLock { ($0.latest, $0.index.encoded(selection)) }
        if let known, !keeps || selection.base.isView { return Reading(cursor: latest.cursor, encoded: known) }
        if let indexed = storage.withLock({ $0.index.query(selection) }), let kept = indexed.kept {
            defer { storage.withLock { $0.index.idles(indexed) } }
            return try measured(indexed) {
                try kept.read(in: latest, keeps: keeps, changes(at: kept.place, in: latest))
            }
        }
        let load = latest.loadCount
        return keep(try latest.selected(selection, countMax: .max), selection, latest, load)
    }

    /// Nil for a value of more than 1,000 parts, which a thread that serves other clients must not encode.
    package func readQuickly(_ selection: Selection) throws -> Reading? {
        let (latest, known) = storage.withLock { ($0.latest, $0.index.encoded(selection)) }
        if let known { return Reading(cursor: latest.cursor, encoded: known) }
        if selection.isQuery { return readQueryQuickly(selection) }
        let load = latest.loadCount
        let selected = try latest.selected(selection, countMax: Self.quickCountMax)
        if case .overBudget = selected { return nil }
        return keep(selected, selection, latest, load)
    }

    /// About the processor time of an evaluation of a query, or of what is watched; nil if nobody knows.
    package func time(of selection: Selection) -> Duration? { storage.withLock { $0.index[selection]?.time } }

    /// The most parts of a value, or of commits, that the hub encodes or compares on the caller's thread or in a pass.
    static let quickCountMax = 1000

    /// An encoding that the state itself caches is not cached twice: it would only take the room of the others.
    private func keep(
        _ selected: SelectedValue, _ selection: Selection, _ snapshot: Snapshot, _ load: Int
    ) -> Reading {
        let encoded = selected.bytes.map(Encoded.init)
        if case .pointer(let place) = selection, let encoded { snapshot.longTree(at: place)?.note(tag: encoded.tag) }
        if case .encoded = selected, let encoded {
            storage.withLock {
                // Under the lock, in which ``forgetViews()`` comes behind the count.
                if $0.latest.cursor == snapshot.cursor, snapshot.loadCount == load {
                    $0.index.note(encoded, for: selection)
                }
            }
        }
        return Reading(cursor: snapshot.cursor, encoded: encoded)
    }

    // MARK: The history

    /// The commits after a version that pass a filter, where they are in memory and a filter looks at few parts of them.
    package func following(_ query: ChangesQuery) -> Following { storage.withLock { $0.following(query) } }

    package var oldestState: Version { storage.withLock { $0.history.oldestState } }

    /// Nil if the history in memory does not reach so far back.
    package func path(to version: Version) -> (from: Snapshot, commits: [Commit])? {
        storage.withLock { $0.history.path(to: version) }
    }

    package func commit(version: Version) -> Commit? { storage.withLock { $0.history.commit(version) } }

    /// The newest commit with an ID that a client gave; a subject of nil stands for any.
    package func commit(id: String, by subject: String? = nil) -> Commit? {
        storage.withLock { $0.history.commit(id: id, by: subject) }
    }

    /// Sets the oldest version that a client can follow from, after the journal has dropped the commits up to it.
    package func journalBegins(at version: Version) {
        storage.withLock { storage in
            endGeneration()
            storage.journalBegins(at: version)
        }
    }

    // MARK: Publishing

    /// One turn at a time calls this; O(n) in the changed pointers.
    ///
    /// The result is what the hub keeps no more, whose end may take long.
    @discardableResult
    func publish(
        _ snapshot: Snapshot, _ commits: [Commit], by writers: @autoclosure () -> Set<String> = []
    ) -> Dropped {
        var dropped = Dropped()
        let mustFanOut = storage.withLock { storage in
            // Under the lock: a client that has seen this snapshot must not get an answer of the generation before.
            endGeneration()
            return storage.publish(snapshot, commits, by: writers(), dropping: &dropped)
        }
        if mustFanOut { scheduleFanOut() }
        return dropped
    }

    /// Forgets the values of views and of queries on them, which may be others at one version, and ends their watches.
    func forgetViews() {
        let ids = storage.withLock { storage in
            endGeneration()
            return storage.index.forgetViews()
        }
        drain(ids)
    }

    func scheduleFanOut() { queues.fanOut { self.fanOut() } }
}

/// Queries on the members of a place: a commit costs each of them the members that it touches.
extension WatchHub {
    package func isReadQuickly(_ selection: Selection) -> Bool {
        let (isKnown, kept) = storage.withLock { ($0.index.encoded(selection) != nil, $0.index[selection]?.kept) }
        guard let kept else { return isKnown }
        return readQueryQuickly(selection) != nil || isKnown && kept.keepsNothing
    }

    func readQueryQuickly(_ selection: Selection) -> Reading? {
        let (latest, kept) = storage.withLock { ($0.latest, $0.index[selection]?.kept) }
        guard let kept, kept.advance(to: latest, changes(at: kept.place, in: latest, isQuick: true)) else { return nil }
        return kept.reading(latest.cursor.epoch)
    }

    /// The members are found once for all queries that ask for the version.
    func changes(
        at place: JSONPointer, in snapshot: Snapshot, isQuick: Bool = false
    ) -> (Version) -> [ChangedMember]? {
        var known: [Version: [ChangedMember]?] = [:]
        return { [self] since in
            if let found = known[since] { return found }
            let commits = storage.withLock { $0.commits(after: since, through: snapshot.cursor.version) }
            let found = commits.flatMap { snapshot.changedMembers(at: place, by: $0, isQuick: isQuick) }
            known[since] = .some(found)
            return found
        }
    }
}

/// The values that end outside the hub's lock: with a state its adopter's objects end, which may read the store, and
/// one large commit may push out thousands of small ones.
struct Dropped: Sendable {
    var latest: Snapshot?
    var past: [Snapshot] = []
    var commits: [Commit] = []
}

package struct HistoryBounds: Sendable {
    package var latest: Cursor
    /// The oldest version that a client can follow from.
    package var oldest: Version

    package init(latest: Cursor, oldest: Version) {
        self.latest = latest
        self.oldest = oldest
    }
}

package struct HubFigures: Sendable {
    /// How many requests wait, by their route, streams not included.
    package let waits: [Watch.Route: Int]
    package let streams: [Watch.Route: Int]
    package let latest: Version
    package let oldest: Version
    package let historyCommitsCount: Int
    package let historyBytes: Int
}

package struct WatchLimits: Sendable {
    package var watchesMax: Int
    package var watchesPerClientMax = 20_000

    /// About how many bytes the values may have that the watches wait for; one client's, half of them.
    package var valuesBytesMax = 64 << 20
    package var viewsMax = 10_000

    package var queriesMax = 2000
    /// About how many bytes may be kept of watched queries; one that would take more is evaluated anew.
    package var queriesBytesMax = 64 << 20
    package var memory = ClientMemory()
}

extension WatchLimits {
    package init() { self.init(watchesMax: 20_000) }
}

package enum WatchRefusal: Error, Sendable {
    case all
    case client
    case views
    case queries
    case memory(ClientMemory.Refusal)
}

/// The memory that clients occupy together, of which each has a share.
package struct ClientMemory: Sendable {
    package enum Refusal: Error, Sendable { case all, client }

    /// Counts more bytes for a client, or fewer; returns the refusal, and counts nothing, where there is no room.
    package var count: @Sendable (_ more: Int, _ client: String) -> Refusal? = { _, _ in nil }

    package init() {}
}

/// The bytes that something holds for a client, which count as long as this object lives; one thread at a time uses it.
package final class HeldMemory: Sendable {
    private let memory: ClientMemory
    private let client: String
    private let bytes = Atomic(0)

    package init(_ memory: ClientMemory, for client: String) { (self.memory, self.client) = (memory, client) }

    deinit { _ = hold(0) }

    /// Counts so many bytes and no others; returns the refusal, and counts as before, where there is no room.
    package func hold(_ count: Int) -> ClientMemory.Refusal? {
        let more = count - bytes.load(ordering: .relaxed)
        if more != 0, let refusal = memory.count(more, client) { return refusal }
        bytes.store(count, ordering: .relaxed)
        return nil
    }
}
