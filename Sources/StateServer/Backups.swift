internal import Dispatch
internal import HTTPMessages
internal import HTTPTypes
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The backup that is on its way to a client, one at a time, copied on its own queue; any thread may call any method.
final class Backups: Sendable {
    private struct Backup {
        let exchange: Exchange
        let access: Access
        /// Nil while it is made.
        var archive: JournalArchive?
        var isClaimed = false
        var chunksCount = 0
        var bytesCount = 0
    }

    private static let chunkBytes = 256 << 10
    /// A client that takes less than a chunk in this time makes way for others.
    private static let patience = Duration.seconds(30)

    private let directory: String
    private let place: JournalPlace
    private let platform: Platform
    private let memory: MemoryBudget
    private let logger: Logger
    private let current = Mutex<Backup?>(nil)
    private let queue = DispatchQueue(label: "storekeeper.backup", qos: .utility)

    init?(_ settings: Settings, platform: Platform, memory: MemoryBudget, logger: Logger) throws {
        guard let place = try JournalPlace(settings.data, settings) else { return nil }
        directory = if case .directory(let path) = place { path } else { settings.clusterDirectory }
        guard directory != "none" else { return nil }
        self.place = place
        self.platform = platform
        self.memory = memory
        self.logger = logger
        do {
            try JournalArchive.removeRemains(in: directory)
        } catch {
            logger.warning("remains of a backup not removed", metadata: ["reason": .string("\(error)")])
        }
    }

    var figures: DirectoryFigures { DirectoryFigures(directory) }

    /// Copies the journal for an exchange, whose handler replies `deferred`; it is resumed, or `failed` has the reason.
    func begin(
        for exchange: Exchange, _ access: Access, failed: @escaping @Sendable (Problem) -> Void
    ) throws(Problem) {
        try current.withLock { (current) throws(Problem) in
            guard current == nil else { throw .backupUnderWay }
            guard memory.reserve(Self.chunkBytes) == nil else { throw .memoryExhausted }
            current = Backup(exchange: exchange, access: access)
        }
        queue.async { [self] in
            do throws(JournalError) {
                let archive = try JournalArchive(in: directory) { try place.history() }
                current.withLock { $0?.archive = archive }
            } catch {
                memory.release(Self.chunkBytes)
                current.withLock { $0 = nil }
                logger.error("backup failed", metadata: ["reason": .string("\(error)")])
                return failed(Self.problem(of: error))
            }
            // The exchange may have ended while there was no copy to drop.
            guard !exchange.isOver else { return dropCopy(for: exchange) }
            exchange.resume()
            // A client whose credential has ended meanwhile is refused instead of taking its copy.
            platform.after(.seconds(5)) { self.dropCopy(for: exchange) }
        }
    }

    private static func problem(of error: JournalError) -> Problem {
        switch error.kind {
        case .noRoom: .noRoomForBackup
        case .damage: .journalDamaged
        case .superseded, .other: .ourFault
        }
    }

    func claim(_ exchange: Exchange) -> JournalArchive? {
        let archive = current.withLock { current -> JournalArchive? in
            guard current?.exchange === exchange, current?.isClaimed == false, let archive = current?.archive else {
                return nil
            }
            current?.isClaimed = true
            return archive
        }
        if archive != nil { platform.after(Self.patience) { self.judge(exchange, chunksCount: 0) } }
        return archive
    }

    func writable(_ exchanges: [Exchange]) {
        guard let exchange = claimed?.exchange, exchanges.contains(exchange) else { return }
        queue.async { self.sendNext(to: exchange) }
    }

    private func sendNext(to exchange: Exchange) {
        guard let archive = claimed(by: exchange)?.archive else { return }
        do throws(JournalError) {
            let bytes = try archive.next(Self.chunkBytes)
            guard !bytes.isEmpty else { return finish(exchange) }
            current.withLock { current in
                guard current?.exchange === exchange else { return }
                current?.chunksCount += 1
                current?.bytesCount += bytes.count
            }
            Exchange.send(bytes, to: [exchange])
        } catch {
            cutOff(exchange, "\(error)")
        }
    }

    private func finish(_ exchange: Exchange) {
        guard let backup = leave(exchange) else { return }
        Exchange.send([], to: [exchange], isLast: true)
        logger.info("backup sent", metadata: metadata(of: backup))
        DirectoryFigures.noteBackup(of: directory)
    }

    private func judge(_ exchange: Exchange, chunksCount: Int) {
        guard let backup = claimed(by: exchange) else { return }
        guard backup.chunksCount > chunksCount else {
            cutOff(exchange, "the client takes too little")
            return
        }
        platform.after(Self.patience) { self.judge(exchange, chunksCount: backup.chunksCount) }
    }

    func end(_ exchange: Exchange) -> Bool { cutOff(exchange, "the client has gone") }

    func stop() {
        if let claimed { cutOff(claimed.exchange, "the server stops") }
    }

    func endWithoutAccess() {
        if let claimed, claimed.access.hasEnded { cutOff(claimed.exchange, "the credential has ended") }
    }

    private var claimed: Backup? { current.withLock { $0?.isClaimed == true ? $0 : nil } }

    private func claimed(by exchange: Exchange) -> Backup? { claimed.flatMap { $0.exchange === exchange ? $0 : nil } }

    @discardableResult
    private func cutOff(_ exchange: Exchange, _ reason: String) -> Bool {
        guard let backup = leave(exchange) else { return false }
        exchange.cutOff()
        logger.warning("backup cut off", metadata: metadata(of: backup, ["reason": .string(reason)]))
        return true
    }

    private func dropCopy(for exchange: Exchange) {
        let isUnclaimed = current.withLock { $0?.exchange === exchange && $0?.isClaimed == false }
        if isUnclaimed { _ = leave(exchange) }
    }

    /// Makes way for the next backup, or returns nil if another caller has done so for this exchange.
    private func leave(_ exchange: Exchange) -> Backup? {
        let left = current.withLock { current -> Backup? in
            guard let backup = current, backup.exchange === exchange, backup.archive != nil else { return nil }
            current = nil
            return backup
        }
        if left != nil { memory.release(Self.chunkBytes) }
        return left
    }

    private func metadata(of backup: Backup, _ others: Logger.Metadata = [:]) -> Logger.Metadata {
        var metadata = others
        metadata["cursor"] = backup.archive.map { .string($0.cursor.description) }
        metadata["bytes"] = .stringConvertible(backup.bytesCount)
        metadata["by"] = backup.access.subject.map { .string($0) }
        return metadata
    }
}

extension RequestHandler {
    /// A HEAD makes no backup, so its answer has the cursor that a backup would have at least.
    func backup(_ request: Request, _ access: Access, _ exchange: Exchange) throws -> Reply {
        guard let backups else { throw Problem.noJournal }
        guard request.method == .get else { return .now(.backup(at: latest)) }
        if let copy = backups.claim(exchange) {
            return .streaming(.backup(at: copy.cursor), heartbeat: heartbeat)
        }
        guard !isDraining.load(ordering: .acquiring) else { throw Problem.draining }
        try backups.begin(for: exchange, access) { [self] problem in answer(exchange, respond(problem, exchange)) }
        return .deferred
    }
}
