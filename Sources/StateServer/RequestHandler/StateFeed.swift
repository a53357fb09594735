internal import StateHTTP
internal import StateStore
internal import Synchronization

/// What state streams have told lately: the entities to go on from, and the last messages, which clients share.
///
/// Any thread may call any method.
final class StateFeed: Sendable {
    /// What decides the messages of a page of commits.
    struct Page: Hashable {
        let since: Version
        let next: Version
        let filter: ChangesFilter
        let store: String
        let access: ObjectIdentifier
        let hasOldValues: Bool
    }

    private struct State {
        /// The entities at the version of the last page of each filter, the one that was used last at the end.
        var entities: [(filter: ChangesFilter, entities: EntityChanges)] = []
        /// The last messages, oldest first.
        var messages: [(page: Page, bytes: [UInt8])] = []
    }

    private let state = Mutex(State())
    private static let filtersMax = 4
    /// How many versions entities may lie behind the newest ones: they hold a state that nothing else may need any more.
    private static let lagMax: Version = 1024
    private static let pagesMax = 8
    private static let bytesMax = 1 << 20

    /// The messages of a page that were made lately.
    func messages(of page: Page) -> [UInt8]? {
        state.withLock { $0.messages.last { $0.page == page }?.bytes }
    }

    /// Keeps the messages of a page for the other clients of the same commits.
    func keep(_ bytes: [UInt8], of page: Page) {
        // Long messages are made again rather than kept.
        guard bytes.count <= Self.bytesMax / Self.pagesMax else { return }
        state.withLock { state in
            state.messages.append((page, bytes))
            if state.messages.count > Self.pagesMax { state.messages.removeFirst() }
        }
    }

    /// The entities at a version from which the stream of a filter goes on; nil where they are not kept.
    func entities(at version: Version, of filter: ChangesFilter) -> EntityChanges? {
        state.withLock { $0.entities.first { $0.filter == filter && $0.entities.version == version }?.entities }
    }

    /// Keeps the entities from which the stream of a filter goes on, unless newer ones are kept.
    func keep(_ entities: EntityChanges, of filter: ChangesFilter) {
        state.withLock { state in
            let known = state.entities.firstIndex { $0.filter == filter }
            if let known, state.entities[known].entities.version > entities.version { return }
            if let known { state.entities.remove(at: known) }
            state.entities.removeAll { $0.entities.version + Self.lagMax < entities.version }
            state.entities.append((filter, entities))
            if state.entities.count > Self.filtersMax { state.entities.removeFirst() }
        }
    }
}
