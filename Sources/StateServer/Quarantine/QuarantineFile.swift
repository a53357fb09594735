internal import FoundationEssentials
internal import StateJSON
internal import StateStore

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
