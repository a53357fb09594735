internal import Dispatch
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The backup that is on its way to a client, one at a time, copied on its own queue; any thread may call any method.
final class Backups: Sendable {
    private struct Sending {
        let exchange: Exchange
        let archive: JournalArchive
        let access: Access
        var chunksCount = 0
        var bytesCount = 0
    }

    private enum Stage {
        case idle
        case copying
        case copied(Sending)
        case sending(Sending)
    }

    enum Refusal: Error {
        case underWay
        case memoryExhausted
    }

    private static let chunkBytes = 256 << 10
    /// A client that takes less than a chunk in this time makes way for others.
    private static let patience = Duration.seconds(30)

    private let directory: String
    private let place: JournalPlace
    private let schedule: Schedule
    private let memory: MemoryBudget
    private let logger: Logger
    private let stage = Mutex(Stage.idle)
    private let queue = DispatchQueue(label: "storekeeper.backup", qos: .utility)

    init(directory: String, of place: JournalPlace, schedule: Schedule, memory: MemoryBudget, logger: Logger) {
        self.directory = directory
        self.place = place
        self.schedule = schedule
        self.memory = memory
        self.logger = logger
        do {
            try JournalArchive.removeRemains(in: directory)
        } catch {
            logger.warning("remains of a backup not removed", metadata: ["reason": .string("\(error)")])
        }
    }

    convenience init?(_ settings: Settings, schedule: Schedule, memory: MemoryBudget, logger: Logger) throws {
        guard let place = try JournalPlace(settings.data, settings) else { return nil }
        let directory =
            switch place {
            case .directory(let path): path
            case .cluster: settings.clusterDirectory
            }
        guard directory != "none" else { return nil }
        self.init(directory: directory, of: place, schedule: schedule, memory: memory, logger: logger)
    }

    var figures: DirectoryFigures { DirectoryFigures(directory) }

    /// Copies the journal for an exchange, whose handler replies `deferred`.
    ///
    /// Where there is no copy, `failed` takes the reason; otherwise the exchange is resumed.
    func begin(
        for exchange: Exchange, _ access: Access, failed: @escaping @Sendable (JournalError) -> Void
    ) -> Refusal? {
        let isFirst = stage.withLock { stage in
            guard case .idle = stage else { return false }
            stage = .copying
            return true
        }
        guard isFirst else { return .underWay }
        guard memory.reserve(Self.chunkBytes) else {
            stage.withLock { $0 = .idle }
            return .memoryExhausted
        }
        queue.async { [self] in
            do throws(JournalError) {
                let archive = try JournalArchive(in: directory) { try place.history() }
                stage.withLock { $0 = .copied(Sending(exchange: exchange, archive: archive, access: access)) }
            } catch {
                memory.release(Self.chunkBytes)
                stage.withLock { $0 = .idle }
                logger.error("backup failed", metadata: ["reason": .string("\(error)")])
                return failed(error)
            }
            // The exchange may have ended while there was no copy to drop.
            guard !exchange.isOver else { return dropCopy(for: exchange) }
            exchange.resume()
            // A client whose credential has ended meanwhile is refused instead of taking its copy.
            schedule.after(.seconds(5)) { self.dropCopy(for: exchange) }
        }
        return nil
    }

    func claim(_ exchange: Exchange) -> JournalArchive? {
        let archive = stage.withLock { stage -> JournalArchive? in
            guard case .copied(let sending) = stage, sending.exchange === exchange else { return nil }
            stage = .sending(sending)
            return sending.archive
        }
        if archive != nil { schedule.after(Self.patience) { self.judge(exchange, chunksCount: 0) } }
        return archive
    }

    func writable(_ exchanges: [Exchange]) {
        let exchange = stage.withLock { stage -> Exchange? in
            guard case .sending(let sending) = stage, exchanges.contains(sending.exchange) else { return nil }
            return sending.exchange
        }
        guard let exchange else { return }
        queue.async { self.sendNext(to: exchange) }
    }

    private func sendNext(to exchange: Exchange) {
        guard let sending = sending(to: exchange) else { return }
        do throws(JournalError) {
            let bytes = try sending.archive.next(Self.chunkBytes)
            guard !bytes.isEmpty else { return finish(exchange) }
            stage.withLock { stage in
                guard case .sending(var sending) = stage, sending.exchange === exchange else { return }
                sending.chunksCount += 1
                sending.bytesCount += bytes.count
                stage = .sending(sending)
            }
            Exchange.send(bytes, to: [exchange])
        } catch {
            cutOff(exchange, "\(error)")
        }
    }

    private func finish(_ exchange: Exchange) {
        guard let sending = leave(exchange) else { return }
        Exchange.send([], to: [exchange], isLast: true)
        logger.info("backup sent", metadata: metadata(of: sending))
        DirectoryFigures.noteBackup(of: directory)
    }

    private func judge(_ exchange: Exchange, chunksCount: Int) {
        guard let sending = sending(to: exchange) else { return }
        guard sending.chunksCount > chunksCount else {
            cutOff(exchange, "the client takes too little")
            return
        }
        schedule.after(Self.patience) { self.judge(exchange, chunksCount: sending.chunksCount) }
    }

    func end(_ exchange: Exchange) -> Bool { cutOff(exchange, "the client has gone") }

    func stop() {
        if let sending = current { cutOff(sending.exchange, "the server stops") }
    }

    func endWithoutAccess() {
        if let sending = current, sending.access.hasEnded { cutOff(sending.exchange, "the credential has ended") }
    }

    private var current: Sending? {
        stage.withLock {
            guard case .sending(let sending) = $0 else { return nil }
            return sending
        }
    }

    @discardableResult
    private func cutOff(_ exchange: Exchange, _ reason: String) -> Bool {
        guard let sending = leave(exchange) else { return false }
        exchange.cutOff()
        logger.warning("backup cut off", metadata: metadata(of: sending, ["reason": .string(reason)]))
        return true
    }

    private func dropCopy(for exchange: Exchange) {
        let isUnclaimed = stage.withLock { stage in
            if case .copied(let sending) = stage { sending.exchange === exchange } else { false }
        }
        if isUnclaimed { _ = leave(exchange) }
    }

    private func sending(to exchange: Exchange) -> Sending? {
        stage.withLock { stage in
            guard case .sending(let sending) = stage, sending.exchange === exchange else { return nil }
            return sending
        }
    }

    /// Makes way for the next backup, or returns nil if another caller has done so for this exchange.
    private func leave(_ exchange: Exchange) -> Sending? {
        let left = stage.withLock { stage -> Sending? in
            switch stage {
            case .copied(let sending) where sending.exchange === exchange,
                .sending(let sending) where sending.exchange === exchange:
                stage = .idle
                return sending
            case .idle, .copying, .copied, .sending: return nil
            }
        }
        if left != nil { memory.release(Self.chunkBytes) }
        return left
    }

    private func metadata(of sending: Sending, _ others: Logger.Metadata = [:]) -> Logger.Metadata {
        var metadata = others
        metadata["cursor"] = .string(sending.archive.cursor.description)
        metadata["bytes"] = .stringConvertible(sending.bytesCount)
        metadata["by"] = sending.access.subject.map { .string($0) }
        return metadata
    }
}
