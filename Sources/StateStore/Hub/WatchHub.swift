internal import Dispatch
internal import Synchronization

/// The published present of a store, its recent history, and everything that watches it.
///
/// Readers and watches are served on whatever thread they come, without waiting for a turn. Looking and parking are one
/// step under the hub's lock: no commit slips between. The store publishes into the hub at the end of a turn, which costs
/// what the turn's commits have changedPointers and nothing for the watches: those are compared, and values are encoded for them,
/// on the fan-out queue.
package final class WatchHub: Sendable {
    let storage: Mutex<HubStorage>
    private let generationCount = Atomic<UInt64>(0)
    let queues: Queues
    let now: @Sendable () -> Instant

    /// Where the hub does its work beside the turns.
    package struct Queues: Sendable {
        /// Compares watches with what is published, one pass after the other.
        package var fanOut: @Sendable (@escaping @Sendable () -> Void) -> Void
        /// Encodes values that take long for those who watch them, one after the other.
        package var encoding: @Sendable (@escaping @Sendable () -> Void) -> Void

        /// Takes two ways to run work later; neither may run it before it returns.
        package init(
            fanOut: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
            encoding: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
        ) {
            self.fanOut = fanOut
            self.encoding = encoding
        }

        /// Two serial dispatch queues.
        package static func dispatch() -> Queues {
            let fanOut = DispatchQueue(label: "storekeeper.fan-out")
            let encoding = DispatchQueue(label: "storekeeper.encoding", qos: .utility)
            return Queues(fanOut: { fanOut.async(execute: $0) }, encoding: { encoding.async(execute: $0) })
        }
    }

    /// Opens a hub on a snapshot.
    ///
    /// - Parameters:
    ///   - journalOldest: the oldest version that a journal can be followed from; nil without a journal.
    ///   - now: the clock of the watches.
    init(
        _ latest: any AnySnapshot, catalogue: Catalogue, limits: StoreLimits, watchLimits: WatchLimits,
        journalOldest: Version?, queues: Queues, now: @escaping @Sendable () -> Instant
    ) {
        self.queues = queues
        self.now = now
        storage = Mutex(
            HubStorage(
                latest: latest, catalogue: catalogue,
                history: History(
                    beginningWith: latest, countMax: limits.historyCommitsMax, weightMax: limits.historyBytesMax),
                limits: watchLimits, journalOldest: journalOldest))
    }

    // MARK: The present

    /// The newest snapshot.
    package var latest: any AnySnapshot { storage.withLock { $0.latest } }

    /// Where the history begins and ends at this instant.
    package var bounds: HistoryBounds {
        storage.withLock { HistoryBounds(latest: $0.latest.cursor, oldest: $0.oldest) }
    }

    /// Rises whenever an answer that tells the present may have become another one.
    package var generation: UInt64 { generationCount.load(ordering: .acquiring) }

    /// Ends the generation: what tells the present has to be asked again.
    package func endGeneration() { generationCount.add(1, ordering: .acquiringAndReleasing) }

    /// How many watches there are, streams included.
    package var watchesCount: Int { storage.withLock { $0.watchesCount } }

    /// How many streams there are.
    ///
    /// O(n) in the number of watches.
    package var streamsCount: Int { storage.withLock { $0.streamsCount } }

    /// The value of a selection now.
    ///
    /// Asked again before the value changes, it costs a look into a dictionary.
    ///
    /// - Throws: `EncodingError` when a view's value cannot be encoded.
    package func read(_ selection: Selection) throws -> Reading {
        let (latest, known) = storage.withLock { ($0.latest, $0.encoded(selection)) }
        if let known { return Reading(cursor: latest.cursor, encoded: known) }
        return keep(try latest.selected(selection, countMax: .max), selection, latest)
    }

    /// The value of a selection, if it is known or soon encoded; nil where ``read(_:)`` takes so long that a thread
    /// which serves others should not do it.
    package func readQuickly(_ selection: Selection) throws -> Reading? {
        let (latest, known) = storage.withLock { ($0.latest, $0.encoded(selection)) }
        if let known { return Reading(cursor: latest.cursor, encoded: known) }
        let selected = try latest.selected(selection, countMax: Self.quickCountMax)
        if case .overBudget = selected { return nil }
        return keep(selected, selection, latest)
    }

    /// How many parts a value has at most that is encoded beside other work.
    static let quickCountMax = 1000

    /// Notes what had to be encoded; what the state keeps encoded anyway would only push that out.
    private func keep(_ selected: SelectedValue, _ selection: Selection, _ snapshot: any AnySnapshot) -> Reading {
        let encoded = selected.text.map(Encoded.init)
        if case .encoded = selected, let encoded {
            storage.withLock {
                if $0.latest.cursor == snapshot.cursor { $0.note(encoded, for: selection) }
            }
        }
        return Reading(cursor: snapshot.cursor, encoded: encoded)
    }

    // MARK: The history

    /// The commits after a position.
    package func following(_ query: ChangesQuery) -> Following { storage.withLock { $0.following(query) } }

    /// The oldest version whose state memory can tell.
    package var oldestState: Version { storage.withLock { $0.history.oldestState } }

    /// The nearest state at or before a version and the commits from there to it, or nil where memory does not reach.
    package func path(to version: Version) -> (from: any AnySnapshot, commits: [Commit])? {
        storage.withLock { $0.history.path(to: version) }
    }

    /// The commit that made a version, if it is in memory.
    package func commit(version: Version) -> Commit? { storage.withLock { $0.history.commit(version) } }

    /// The newest commit with a client's own ID, if it is in memory.
    package func commit(id: String) -> Commit? { storage.withLock { $0.history.commit(id: id) } }

    /// Notes that the journal has dropped the commits up to a version.
    package func journalBegins(at version: Version) {
        storage.withLock { $0.journalBegins(at: version) }
        endGeneration()
    }

    // MARK: The store's side

    /// Makes a turn's result the present.
    ///
    /// Called by one turn at a time. It costs what the commits have changedPointers; watches are compared later.
    func publish(_ snapshot: any AnySnapshot, _ commits: [Commit]) {
        let mustFanOut = storage.withLock { $0.publish(snapshot, commits) }
        endGeneration()
        if mustFanOut { scheduleFanOut() }
    }

    func scheduleFanOut() { queues.fanOut { self.fanOut() } }
}

/// Where a history begins and ends.
package struct HistoryBounds: Sendable {
    /// The newest published instant.
    package var latest: Cursor
    /// The oldest version that can be followed from.
    package var oldest: Version

    /// Makes bounds.
    package init(latest: Cursor, oldest: Version) {
        self.latest = latest
        self.oldest = oldest
    }
}
