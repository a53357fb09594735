internal import Dispatch
internal import Logging
internal import MicroHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// Hands what the store publishes to those who were built after it.
final class PublicationRelay: Sendable {
    private let receivers = Mutex<(desk: Desk?, saver: SnapshotSaver?)>((nil, nil))

    func connect(desk: Desk, saver: SnapshotSaver?) {
        receivers.withLock { $0 = (desk, saver) }
    }

    /// Ends the circle of references from the store to those who reach the store.
    func disconnect() {
        receivers.withLock { $0 = (nil, nil) }
    }

    func publish(_ snapshot: Snapshot, _ commits: [Commit]) {
        let (desk, saver) = receivers.withLock { $0 }
        desk?.publish(snapshot, commits)
        saver?.consider(snapshot)
    }
}

/// Saves a snapshot in the journal now and then, off the store's queue.
final class SnapshotSaver: Sendable {
    private let journal: Journal
    private let board: Board
    private let freshness: Freshness
    private let logger: Logger
    private let queue = DispatchQueue(label: "storekeeper.snapshots", qos: .utility)

    init(journal: Journal, board: Board, freshness: Freshness, logger: Logger) {
        self.journal = journal
        self.board = board
        self.freshness = freshness
        self.logger = logger
    }

    /// Saves this snapshot if one is due.
    func consider(_ snapshot: Snapshot) {
        guard journal.claimSnapshot() else { return }
        queue.async { [self] in
            do {
                board.journalBegins(at: try journal.saveSnapshot(snapshot.whole(), version: snapshot.cursor.version))
                // `GET /v1` says where the history begins.
                freshness.end()
            } catch {
                logger.warning("snapshot not saved", metadata: ["reason": .string("\(error)")])
            }
        }
    }
}
