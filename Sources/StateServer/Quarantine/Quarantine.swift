internal import Logging
internal import StateStore
internal import Synchronization

/// The actions that are set aside because the process has ended twice while a turn or a dry run reduced them.
///
/// A start looks for the transaction that the process before was reducing when it ended. The first time it is
/// suspected, because a kill or a lack of memory can meet any transaction; one that is later reduced without harm is
/// suspected no longer. The second time it is written to the file, and the turn refuses it.
final class Quarantine: Sendable {
    /// What a turn marks.
    let mark: ReductionMark
    private let file: WatchedFile<[QuarantineFile.Entry]>
    private let logger: Logger
    private let entries: Mutex<[QuarantineFile.Entry]>

    /// How many actions the file lists at most; the oldest makes way for another one.
    private static let entriesMax = 1000

    /// How long a suspicion counts that several servers share.
    private static let suspicionTime = Duration.seconds(3600)

    /// Looks for what the process before was reducing.
    ///
    /// - Parameters:
    ///   - directory: where this server, and no other, keeps what it is reducing; nil where it does not outlive the process.
    ///   - file: the list.
    ///   - isShared: whether other servers read the list. The first crash is then in the list, too, so that the second may be
    ///     another server's; no server knows whether another one has reduced the action without harm, so this counts for an hour.
    /// - Throws: ``SettingsFault`` where one of the files cannot be used.
    init(directory: String?, _ file: QuarantineFile, isShared: Bool, logger: Logger) throws(SettingsFault) {
        self.logger = logger
        let mapped = try MappedPage(directory: directory)
        let page = mapped.page
        page.prepare(boot: MappedPage.boot)
        var entries = try file.read()
        var identities: Set<TransactionIdentity> = []
        for work in MarkPage.Work.allCases {
            guard let record = page.interrupted(in: work) else { continue }
            defer { page.end(work) }
            // A crash counts once.
            guard identities.insert(record.identity).inserted else { continue }
            if Self.quarantine(record, page, &entries) {
                entries = entries.suffix(Self.entriesMax)
                do {
                    // A command may have changed the file since.
                    try file.change { latest in
                        if Self.quarantine(record, page, &latest) { entries = latest.suffix(Self.entriesMax) }
                        latest = entries
                    }
                } catch {
                    logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
                }
                // Only now: a start that is killed before finds the same again.
                for (place, suspected) in page.suspected where suspected.identity == record.identity {
                    page.removeSuspected(at: place)
                }
                logger.error("action quarantined", metadata: Self.metadata(record, entries.last?.id))
            } else {
                if isShared {
                    Self.suspect(record, in: file, logger)
                } else {
                    page.addSuspected(record)
                }
                logger.warning("the process ended while it reduced an action", metadata: Self.metadata(record, nil))
            }
        }
        self.file = WatchedFile(file.file, decode: file.entries)
        self.entries = Mutex(entries)
        mark = ReductionMark(page, owner: mapped)
        mark.setQuarantined(Self.refused(entries))
        let refused = entries.filter { $0.state == .quarantined }
        guard !refused.isEmpty else { return }
        logger.warning(
            "actions are quarantined",
            metadata: [
                "count": .stringConvertible(refused.count),
                "ids": .string(refused.suffix(10).map(\.id).joined(separator: ", ")),
            ])
    }

    /// The names of the actions that are refused.
    var names: [String] { entries.withLock { $0 }.filter { $0.state == .quarantined }.map(\.id) }

    /// Whether a process has ended while it reduced a transaction, and other servers know of it.
    func suspects(_ transaction: Transaction) -> Bool {
        guard let identity = TransactionIdentity(transaction) else { return false }
        return entries.withLock { entries in entries.contains { $0.state == .suspected && $0.identity == identity } }
    }

    /// Reads the file again where it has changed.
    func reload() {
        switch file.news() {
        case .content(let entries):
            self.entries.withLock { $0 = entries }
            let refused = Self.refused(entries)
            mark.setQuarantined(refused)
            logger.notice("quarantine read", metadata: ["count": .stringConvertible(refused.count)])
        case .fault(let reason): logger.error("quarantine not read", metadata: ["reason": .string(reason)])
        case nil: break
        }
    }

    /// Adds a transaction to the entries where it is suspected already, or was let pass after it had been set aside, and
    /// drops suspicions that count no more.
    private static func quarantine(
        _ record: MarkPage.Record, _ page: MarkPage, _ entries: inout [QuarantineFile.Entry]
    ) -> Bool {
        entries.removeAll { $0.state == .suspected && $0.age > suspicionTime }
        if let index = entries.firstIndex(where: { $0.identity == record.identity }) {
            var entry = entries.remove(at: index)
            entry.state = .quarantined
            entry.crashes += 1
            entries.append(entry)
            return true
        }
        guard page.suspected.contains(where: { $0.record.identity == record.identity }) else { return false }
        entries.append(QuarantineFile.Entry(record))
        return true
    }

    /// Adds a transaction to the list as a suspected one.
    private static func suspect(_ record: MarkPage.Record, in file: QuarantineFile, _ logger: Logger) {
        do {
            try file.change { entries in
                var entry = QuarantineFile.Entry(record)
                (entry.state, entry.crashes) = (.suspected, 1)
                entries.append(entry)
                entries = entries.suffix(Self.entriesMax)
            }
        } catch {
            logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
        }
    }

    private static func refused(_ entries: [QuarantineFile.Entry]) -> [TransactionIdentity: String] {
        Dictionary(
            entries.compactMap { entry in
                entry.state == .quarantined ? entry.identity.map { ($0, entry.id) } : nil
            }
        ) { $1 }
    }

    private static func metadata(_ record: MarkPage.Record, _ id: String?) -> Logger.Metadata {
        let entry = QuarantineFile.Entry(record)
        var metadata: Logger.Metadata = [
            "action.type": .string(record.type), "by": .string(entry.by), "quarantine": .string(id ?? "no, suspected"),
        ]
        if let name = entry.name { metadata["name"] = .string(name) }
        return metadata
    }
}
