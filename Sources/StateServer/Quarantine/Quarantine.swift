internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import StateJSON
internal import StateStore
internal import Synchronization

/// The actions and the views that are set aside because the process has ended twice while it computed them.
///
/// The first time one is only suspected, because a kill or a lack of memory can meet anything.
final class Quarantine: Sendable {
    private struct State {
        var names: [String] = []
        /// The entries, and since when this server has seen that the same server tries it.
        var known: [TransactionIdentity: (entry: QuarantineEntry, triedSince: ContinuousClock.Instant)] = [:]
    }

    let mark: ReductionMark
    let changes: QuarantineChanges
    let server: String
    let process = String(UInt64.random(in: 0 ... .max), radix: 16)
    let hasPage: Bool
    let trials = Mutex(Trials())
    let trialsQueue = DispatchQueue(label: "storekeeper.quarantine.trials")
    private let file: WatchedFile<[QuarantineEntry]?>
    private let logger: Logger
    private let state = Mutex(State())

    init(directory: String?, _ file: QuarantineFile, server: String? = nil, logger: Logger) throws(SettingsFault) {
        self.logger = logger
        hasPage = directory != nil
        let server = server ?? directory.map { "\(ProcessInfo.processInfo.hostName):\($0)" } ?? "process \(process)"
        let changes = QuarantineChanges(file, logger)
        (self.server, self.changes) = (server, changes)
        let mapped = try MappedPage(directory: directory)
        let page = mapped.page
        page.prepare(boot: MappedPage.boot)
        var ended: [MarkPage.Record] = []
        for record in (0..<MarkPage.slotsMax).compactMap(page.interrupted) {
            if !ended.contains(where: { $0.identity == record.identity }) { ended.append(record) }
        }
        var entries = try file.read() ?? []
        // Before the list: a start that is killed between the two would let the next one count the same end again.
        for slot in 0..<MarkPage.slotsMax { page.end(slot) }
        let isWritten =
            ended.isEmpty
            || changes.make { latest in
                // A command or another server may have changed the file since.
                for record in ended { latest.recordEnd(during: record, of: server) }
                entries = latest
            }
        // It is not tried again: the list may have it, and an end that counts twice sets aside what is harmless.
        if !isWritten { for record in ended { entries.recordEnd(during: record, of: server) } }
        self.file = WatchedFile(file.file, decode: file.entries)
        mark = ReductionMark(page, owner: mapped, released: changes.release)
        for entry in entries {
            guard let identity = entry.identity else { continue }
            if ended.contains(where: { $0.identity == identity }) {
                log(entry)
            } else if hasPage, let trial = entry.tried, trial.isOnPage, trial.server == server {
                // The page names another action or nothing: the end was no fault of what this server tried then.
                changes.change { $0.end(trial, of: identity) }
            }
        }
        take(entries)
        guard !names.isEmpty else { return }
        logger.log(
            .warning, "actions are quarantined",
            ["count": names.count, "ids": names.suffix(10).joined(separator: ", ")])
    }

    var names: [String] { state.withLock(\.names) }

    var mayTry: Bool { state.withLock { !$0.names.isEmpty } || trials.withLock { $0.current != nil } }

    var hasEntries: Bool { state.withLock { !$0.known.isEmpty } }

    func entry(
        of identity: TransactionIdentity
    ) -> (entry: QuarantineEntry, triedSince: ContinuousClock.Instant)? {
        state.withLock { $0.known[identity] }
    }

    func reload() {
        switch file.news() {
        case .content(let entries):
            take(entries ?? [])
            logger.notice("quarantine read", metadata: ["count": .stringConvertible(names.count)])
        case .fault(let reason): logger.error("quarantine not read", metadata: ["reason": .string(reason)])
        case .shut, nil: break
        }
    }

    func take(_ entries: [QuarantineEntry]) {
        var listed: [TransactionIdentity: ReductionMark.Refused?] = [:]
        for entry in entries where entry.state != .retry {
            guard let identity = entry.identity else { continue }
            let isRefused = entry.state == .quarantined
            listed.updateValue(
                isRefused ? .init(name: entry.id, version: entry.version ?? 0) : nil, forKey: identity)
        }
        // The turns first: they refuse what the list is asked about next.
        mark.watch(listed)
        state.withLock { state in
            let earlier = exchange(&state.known, with: [:])
            for entry in entries {
                guard let identity = entry.identity else { continue }
                let before = earlier[identity].flatMap { $0.entry.tried == entry.tried ? $0.triedSince : nil }
                state.known[identity] = (entry, before ?? .now)
            }
            state.names = entries.filter { $0.state == .quarantined }.map(\.id)
        }
    }

    private func log(_ entry: QuarantineEntry) {
        let isView = entry.version != nil
        guard entry.state == .quarantined else {
            let what = isView ? "computed a view" : "reduced an action"
            return logger.log(
                .warning, "the process ended while it \(what)",
                ["action.type": entry.type, "by": entry.by, "name": entry.name, "quarantine": "no, suspected"])
        }
        logger.log(
            .error, isView ? "view quarantined" : "action quarantined",
            ["action.type": entry.type, "by": entry.by, "name": entry.name, "quarantine": entry.id])
    }
}

/// The file `reducing`, mapped into memory: the kernel keeps what is stored there when the process ends.
final class MappedPage: Sendable {
    // unsafe: it only keeps the mapping, whose address never changes.
    nonisolated(unsafe) private let address: UnsafeMutableRawPointer
    /// The memory, which is valid as long as this object lives.
    var page: MarkPage { MarkPage(address) }

    /// Maps the file, and makes a missing one; without a directory the memory ends with the process.
    init(directory: String?) throws(SettingsFault) {
        let path = (directory ?? "") + "/reducing"
        var (file, sharing) = (Int32(-1), MAP_PRIVATE | Int32(MAP_ANONYMOUS))
        defer { if file >= 0 { close(file) } }
        if let directory {
            mkdir(directory, 0o700)
            (file, sharing) = (open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600), MAP_SHARED)
            guard file >= 0 else { throw Self.fault(path, errno) }
            // A store into a page without room on the disk would end the process.
            let code = posix_fallocate(file, 0, off_t(MarkPage.size))
            guard code == 0 else { throw Self.fault(path, code) }
        }
        let mapped = mmap(nil, MarkPage.size, PROT_READ | PROT_WRITE, sharing, file, 0)
        guard let mapped, mapped != MAP_FAILED else { throw Self.fault(path, errno) }
        address = mapped
    }

    deinit {
        munmap(address, MarkPage.size)
    }

    /// The identity of this boot of the machine, or zeros if the system does not say it.
    static var boot: ContentHash {
        let bytes = try? SharedFile(path: "/proc/sys/kernel/random/boot_id", name: "boot").bytes()
        return bytes.map { ContentHash(Array($0)) } ?? ContentHash(high: 0, low: 0)
    }

    private static func fault(_ path: String, _ code: Int32) -> SettingsFault {
        SettingsFault(description: "the file \(path) cannot be mapped: \(String(cString: strerror(code)))")
    }
}
