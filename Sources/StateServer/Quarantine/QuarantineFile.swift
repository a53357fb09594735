internal import Dispatch
internal import FoundationEssentials
internal import Logging
internal import StateJSON
internal import StateStore
internal import Synchronization

struct QuarantineEntry: SharedListEntry {
    enum State: String, Codable {
        case quarantined
        /// It passes; the next crash sets it aside again.
        case retry
        /// One process has ended while it reduced the action; the next crash sets it aside.
        case suspected
    }

    var id: String
    var state: State
    var type: String
    /// The kind of its identity: `key`, `id`, `content` or `view`.
    var by: String
    /// The idempotency key or the ID, or nil if the content identifies it.
    var name: String?
    var subject: String?
    /// The line of the bulk load whose key it is; nil for anything else.
    var line: Int?
    var crashes: Int
    /// When it was set aside, in RFC 3339.
    var since: String
    /// The hash of what identifies it, 32 hexadecimal digits.
    var hash: String
    /// The version of the state with which a view is refused; nil for an action.
    var version: Version?
    var server: String?
    var tried: Trial?

    struct Trial: Sendable, Codable, Equatable {
        var server: String
        /// The name of the process, which is another one after a restart.
        var process: String
        /// Whether the page of the server tells its next process if the action has ended this one.
        var isOnPage: Bool
    }

    static let name = "list of quarantined actions"
    static let key = "quarantine"
    static let noun = "action"
    static let listCommand = "journal quarantine list"
    static let repair = "; repair it, or remove it to let all of them pass"

    var fault: String? { identity == nil ? "it has no valid hash" : nil }
}

typealias QuarantineFile = SharedList<QuarantineEntry>

extension QuarantineEntry {
    var identification: String {
        // A client has chosen the text, and a terminal obeys control characters.
        by + (name.map { " " + String($0.map { $0.isASCII && $0 < " " ? "?" : $0 }) } ?? "")
            + (line.map { " line \($0)" } ?? "") + (subject.map { " of \($0)" } ?? "")
    }

    init(_ record: MarkPage.Record, server: String?, tried: QuarantineEntry.Trial?) {
        let hash = record.identity.hash
        let digits = String(UInt128(hash.high) << 64 | UInt128(hash.low), radix: 16)
        let zeros = String(repeating: "0", count: 32 - digits.count)
        let key = record.identity.kind == .key ? IdempotencyKey(recorded: record.name) : nil
        self.init(
            id: "q\(record.identity.kind.rawValue)" + (zeros + digits).prefix(10), state: .suspected, type: record.type,
            by: Self.kinds[Int(record.identity.kind.rawValue) - 1],
            name: key?.key.text ?? (record.name.isEmpty ? nil : record.name), subject: key?.subject?.text,
            line: key?.line.map { $0 + 1 }, crashes: 1,
            since: Date().formatted(.iso8601), hash: zeros + digits,
            version: record.identity.kind == .view ? record.version : nil, server: server, tried: tried)
    }

    private static let kinds = ["key", "id", "content", "view"]

    /// How long it has been in the list; longer than anything where the time is misspelled.
    var age: Duration {
        guard let date = try? Date(since, strategy: .iso8601) else { return .seconds(Int64.max) }
        return .seconds(Date().timeIntervalSince(date))
    }

    var identity: TransactionIdentity? {
        guard hash.utf8.count == 32, let bits = UInt128(hash, radix: 16), let place = Self.kinds.firstIndex(of: by),
            let kind = TransactionIdentity.Kind(rawValue: UInt8(place + 1))
        else { return nil }
        let (high, low) = (UInt64(truncatingIfNeeded: bits >> 64), UInt64(truncatingIfNeeded: bits))
        return TransactionIdentity(kind, ContentHash(high: high, low: low))
    }
}

/// Changes of the list while the server runs, in their order; one write has all that have come during the one before.
final class QuarantineChanges: Sendable {
    typealias Change = @Sendable (inout [QuarantineEntry]) -> Void

    private let file: QuarantineFile
    private let logger: Logger
    private let unwritten = Mutex<[Change]>([])
    private let queue = DispatchQueue(label: "storekeeper.quarantine")

    init(_ file: QuarantineFile, _ logger: Logger) { (self.file, self.logger) = (file, logger) }

    /// Makes a change as often as it takes, lest what is harmless be set aside; `body` may run again.
    func change(_ body: @escaping Change) {
        let isFirst = unwritten.withLock { unwritten in
            unwritten.append(body)
            return unwritten.count == 1
        }
        if isFirst { queue.async { self.writeAll() } }
    }

    func afterwards(_ done: @escaping @Sendable () -> Void) { queue.async(execute: done) }

    /// Tries to make a change once, behind those before, and waits; false where the list may not have it.
    func make(_ body: (inout [QuarantineEntry]) -> Void) -> Bool { queue.sync { write(body) } }

    func release(_ identity: TransactionIdentity) { change { $0.removeAll { $0.identity == identity } } }

    private func writeAll() {
        while unwritten.withLock({ !$0.isEmpty }) {
            guard write({ _ in }) else {
                return queue.asyncAfter(deadline: .now() + .milliseconds(500)) { self.writeAll() }
            }
        }
    }

    private func write(_ body: (inout [QuarantineEntry]) -> Void) -> Bool {
        let changes = unwritten.withLock(\.self)
        do throws(SettingsFault) {
            // A change that leaves the list as it is shows that the list can be written.
            try file.change(writesSame: true) { entries in
                var changed = entries ?? []
                for change in changes { change(&changed) }
                body(&changed)
                entries = changed
            }
        } catch {
            logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
            return false
        }
        unwritten.withLock { $0.removeFirst(changes.count) }
        return true
    }
}
