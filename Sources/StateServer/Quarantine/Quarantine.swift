internal import Logging
internal import StateStore
internal import Synchronization

/// The actions and the views that are set aside because the process has ended twice while it computed them.
///
/// The first time one is only suspected, because a kill or a lack of memory can meet anything; what is later computed
/// without harm is suspected no longer. The second time it is written to the file, and refused.
final class Quarantine: Sendable {
    private struct State {
        var entries: [QuarantineFile.Entry]
        var byIdentity: [TransactionIdentity: QuarantineFile.Entry] = [:]
        /// When this server has seen first that another one tries an action.
        var trialsSince: [TransactionIdentity: ContinuousClock.Instant] = [:]

        init(_ entries: [QuarantineFile.Entry], after earlier: State? = nil) {
            self.entries = entries
            for entry in entries {
                guard let identity = entry.identity else { continue }
                byIdentity[identity] = entry
                guard let trial = entry.tried else { continue }
                let isSame = earlier?.byIdentity[identity]?.tried == trial
                trialsSince[identity] = isSame ? earlier?.trialsSince[identity] ?? .now : .now
            }
        }
    }

    let mark: ReductionMark
    let changes: QuarantineChanges
    let server: String
    let process = String(UInt64.random(in: 0 ... .max), radix: 16)
    /// Whether the next process of this server can see what this one was computing when it ended.
    let hasPage: Bool
    let trials = Mutex(Trials())
    private let file: WatchedFile<[QuarantineFile.Entry]>
    private let logger: Logger
    private let state: Mutex<State>

    /// If other servers read the list, the first crash is in it, too, so that the second may be another server's.
    init(
        directory: String?, _ file: QuarantineFile, isShared: Bool, server: String? = nil, logger: Logger
    ) throws(SettingsFault) {
        self.logger = logger
        hasPage = directory != nil
        self.server = server ?? directory.map { "\(MappedPage.host):\($0)" } ?? "process \(process)"
        let mapped = try MappedPage(directory: directory)
        let page = mapped.page
        page.prepare(boot: MappedPage.boot)
        var entries = try file.read()
        var identities: Set<TransactionIdentity> = []
        for slot in 0..<MarkPage.slotsMax {
            guard let record = page.interrupted(in: slot) else { continue }
            defer { page.end(slot) }
            // A crash counts once.
            guard identities.insert(record.identity).inserted else { continue }
            let place = page.suspected.first { $0.record.identity == record.identity }?.place
            var isSetAside = false
            if isShared || place != nil || entries.contains(where: { $0.identity == record.identity }) {
                do {
                    // A command or another server may have changed the file since.
                    try file.change { latest in
                        isSetAside = latest.recordEnd(during: record, of: server, isSuspected: place != nil)
                        entries = latest
                    }
                } catch {
                    isSetAside = entries.recordEnd(during: record, of: server, isSuspected: place != nil)
                    logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
                }
            } else {
                page.addSuspected(record)
            }
            if isSetAside {
                // Only now: a start that is killed before finds the same again.
                if let place { page.removeSuspected(at: place) }
                let name = record.identity.kind == .view ? "view quarantined" : "action quarantined"
                logger.error("\(name)", metadata: Self.metadata(record, entries.last?.id))
            } else {
                let what = record.identity.kind == .view ? "computed a view" : "reduced an action"
                logger.warning("the process ended while it \(what)", metadata: Self.metadata(record, nil))
            }
        }
        self.file = WatchedFile(file.file, decode: file.entries)
        changes = QuarantineChanges(file, logger)
        if hasPage {
            // Where the page names another action or nothing, the end before was no fault of what this server tried then.
            for entry in entries where entry.tried?.server == self.server {
                guard let identity = entry.identity, !identities.contains(identity) else { continue }
                changes.change { [server = self.server] in $0.endTrial(of: identity, by: server, process: nil) }
            }
        }
        state = Mutex(State(entries))
        mark = ReductionMark(page, owner: mapped, released: changes.release)
        watch(entries)
        let refused = entries.filter { $0.state == .quarantined }
        guard !refused.isEmpty else { return }
        logger.warning(
            "actions are quarantined",
            metadata: [
                "count": .stringConvertible(refused.count),
                "ids": .string(refused.suffix(10).map(\.id).joined(separator: ", ")),
            ])
    }

    var names: [String] { state.withLock(\.entries).filter { $0.state == .quarantined }.map(\.id) }

    var mayTry: Bool { hasEntries || trials.withLock { $0.current != nil } }

    var hasEntries: Bool { state.withLock { !$0.entries.isEmpty } }

    func entry(
        of identity: TransactionIdentity
    ) -> (entry: QuarantineFile.Entry?, triedSince: ContinuousClock.Instant?) {
        state.withLock { ($0.byIdentity[identity], $0.trialsSince[identity]) }
    }

    func reload() {
        switch file.news() {
        case .content(let entries):
            take(entries)
            logger.notice("quarantine read", metadata: ["count": .stringConvertible(names.count)])
        case .fault(let reason): logger.error("quarantine not read", metadata: ["reason": .string(reason)])
        case .shut, nil: break
        }
    }

    func take(_ entries: [QuarantineFile.Entry]) {
        // The turns first: they refuse what the list is asked about next.
        watch(entries)
        state.withLock { $0 = State(entries, after: $0) }
    }

    private func watch(_ entries: [QuarantineFile.Entry]) {
        var refused: [TransactionIdentity: ReductionMark.Refused] = [:]
        var suspected: Set<TransactionIdentity> = []
        for entry in entries {
            guard let identity = entry.identity else { continue }
            switch entry.state {
            case .quarantined: refused[identity] = .init(name: entry.id, version: entry.version ?? 0)
            case .suspected: suspected.insert(identity)
            case .retry: break
            }
        }
        mark.watch(refused, suspected: suspected)
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
