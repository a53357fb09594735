internal import StateHTTP
internal import StateStore
internal import Synchronization

/// The last entities and messages of state streams, which clients share; any thread may call any method.
final class StatePages: Sendable {
    struct Page: Hashable {
        let since: Version
        let next: Version
        let filter: ChangesFilter
        let store: String
        let access: Access
        let hasOldValues: Bool
    }

    struct Messages {
        let array: [UInt8]
        /// The last version whose messages these are: long messages end before the page does.
        let next: Version
    }

    private struct State {
        /// The entities at the version of the last page of each filter, the one that was used last at the end.
        var entities: [(filter: ChangesFilter, entities: EntityChanges)] = []
        /// The snapshots that clients are reading in pages, oldest first, each with the time at which its first client came.
        var snapshots: [(snapshot: Snapshot, since: Instant)] = []
        var sent: [(page: Page, messages: Messages)] = []
    }

    private let state = Mutex(State())
    private static let filtersMax = 4
    /// How many versions entities may lie behind the newest ones: they keep a state that nothing else may need.
    private static let lagMax: Version = 1024
    private static let pagesMax = 8
    private static let bytesMax = 1 << 20

    /// For how long clients that begin to read a large state share a version.
    private static let sharing = Duration.seconds(5)
    private static let snapshotsMax = 4

    /// The snapshot of a moment ago, or else the latest: a writer would otherwise make a version for each client.
    func shared(_ latest: Snapshot, at now: Instant) -> Snapshot {
        // A dropped page ends outside the lock: a state has an adopter's objects.
        state.withLock { state -> (Snapshot, dropped: Snapshot?) in
            if let last = state.snapshots.last, now - last.since < Self.sharing { return (last.snapshot, nil) }
            state.snapshots.append((latest, now))
            let isFull = state.snapshots.count > Self.snapshotsMax
            return (latest, isFull ? state.snapshots.removeFirst().snapshot : nil)
        }.0
    }

    func snapshot(_ cursor: Cursor) -> Snapshot? {
        state.withLock { $0.snapshots.last { $0.snapshot.cursor == cursor }?.snapshot }
    }

    func messages(of page: Page) -> Messages? { state.withLock { $0.sent.last { $0.page == page }?.messages } }

    func keep(_ messages: Messages, of page: Page) {
        // Long messages are made again rather than kept.
        guard messages.array.count <= Self.bytesMax / Self.pagesMax else { return }
        state.withLock { state in
            state.sent.append((page, messages))
            if state.sent.count > Self.pagesMax { state.sent.removeFirst() }
        }
    }

    func entities(at version: Version, of filter: ChangesFilter) -> EntityChanges? {
        state.withLock { $0.entities.first { $0.filter == filter && $0.entities.version == version }?.entities }
    }

    func keep(_ entities: EntityChanges, of filter: ChangesFilter) {
        _ = state.withLock { state -> [(ChangesFilter, EntityChanges)] in
            let before = state.entities
            let known = before.firstIndex { $0.filter == filter }
            if let known, before[known].entities.version > entities.version { return [] }
            if let known { state.entities.remove(at: known) }
            state.entities.removeAll { $0.entities.version + Self.lagMax < entities.version }
            state.entities.append((filter, entities))
            if state.entities.count > Self.filtersMax { state.entities.removeFirst() }
            return before
        }
    }
}
