internal import CCrypto
internal import FoundationEssentials
internal import StateHTTP
internal import StateJSON
internal import StateStore

struct HookRun: Sendable {
    struct Delivery: Sendable {
        /// Nil where the hook is behind the history that is kept.
        var commit: Commit?
        var cursor: Cursor
        var body: [UInt8]
        var id: String
    }

    private(set) var entry: HookEntry
    private(set) var view: HookView
    private(set) var progress: HookProgress
    private var commits: ArraySlice<Commit> = []
    private var commitsEnd: Version = 0
    private(set) var delivery: Delivery?
    private(set) var attempt: Int?
    private var attemptsCount = 0
    private var notBefore: Instant?

    init(_ entry: HookEntry, _ view: HookView, _ progress: HookProgress) {
        (self.entry, self.view, self.progress) = (entry, view, progress)
    }

    var cursor: Cursor? { Cursor(text: progress.cursor) }

    func isDue(at now: Instant) -> Bool {
        attempt == nil && entry.paused == nil && notBefore.map { $0 <= now } ?? true
    }

    mutating func replace(by entry: HookEntry, _ view: HookView) {
        let isOther = (entry.types, entry.path, entry.grant) != (self.entry.types, self.entry.path, self.entry.grant)
        if entry.paused == nil, self.entry.paused != nil || entry.url != self.entry.url { notBefore = nil }
        (self.entry, self.view) = (entry, view)
        if entry.paused != nil || isOther { attempt = nil }
        if isOther { (commits, commitsEnd, delivery) = ([], 0, nil) }
    }

    /// Carries out an order to go on; one for a commit that is not kept, or not there yet, passes over none.
    mutating func resume(keptAfter oldest: Version, through latest: Version) -> Bool {
        guard let order = entry.resend, order.time != progress.resent else { return false }
        (progress.resent, notBefore) = (order.time, nil)
        if order.from == nil { progress.refusals = nil }
        guard let from = order.from.flatMap({ Cursor(text: $0) }), let cursor, from.epoch == cursor.epoch,
            from.version > oldest, from.version <= latest + 1
        else { return true }
        (commits, commitsEnd, delivery, attempt) = ([], 0, nil, nil)
        (progress.failing, progress.refusals) = (nil, nil)
        move(to: Cursor(from.epoch, from.version - 1))
        return true
    }

    var needsCommits: Version? { delivery == nil && commits.isEmpty ? cursor?.version : nil }

    mutating func take(_ page: ChangesPage) {
        (commits, commitsEnd) = (page.commits[...], page.next)
        if page.commits.isEmpty { move(to: Cursor(page.latest.epoch, page.next)) }
    }

    /// The body is nil for a commit of which the hook sees nothing.
    mutating func advance(in epoch: Epoch, _ body: (Commit) -> [UInt8]?) {
        while delivery == nil, let commit = commits.popFirst() {
            let cursor = Cursor(epoch, commit.version)
            if let body = body(commit) {
                delivery = Delivery(commit: commit, cursor: cursor, body: body, id: id(of: cursor))
            } else {
                move(to: cursor)
            }
        }
        if delivery == nil, let version = cursor?.version, version < commitsEnd { move(to: Cursor(epoch, commitsEnd)) }
    }

    mutating func reset(to latest: Cursor, _ body: [UInt8]) {
        (commits, commitsEnd) = ([], 0)
        delivery = Delivery(commit: nil, cursor: latest, body: body, id: "\(id(of: latest))_reset")
    }

    // No dot: the signature has one behind the ID.
    private func id(of cursor: Cursor) -> String { "\(entry.id)_\(cursor.epoch)_\(cursor.version)" }

    private mutating func move(to cursor: Cursor) {
        progress.cursor = cursor.description
        // A delivery that failed here is behind it.
        if let failed = progress.failing.flatMap({ Cursor(text: $0.cursor) }),
            failed.epoch != cursor.epoch || failed.version <= cursor.version
        {
            progress.failing = nil
        }
    }

    mutating func begin() -> Int {
        attemptsCount += 1
        attempt = attemptsCount
        return attemptsCount
    }

    mutating func abandon() { attempt = nil }

    mutating func finish(_ delivery: Delivery) {
        (self.delivery, attempt, notBefore, progress.failing) = (nil, nil, nil, nil)
        move(to: delivery.cursor)
    }

    mutating func note(refused: String, of commit: Commit, at cursor: Cursor) {
        let known = progress.refusals
        progress.refusals = .init(
            count: (known?.count ?? 0) &+ 1, first: known?.first ?? cursor.description,
            since: known?.since ?? RFC3339.text(milliseconds: commit.time.milliseconds), newest: cursor.description,
            reason: refused)
    }

    /// At most an hour counts of the seconds that the receiver asks for; true is for the first failure there.
    mutating func fail(
        _ reason: String, at now: Instant, date: Timestamp, random: Double, retryAfter seconds: Int = 0
    ) -> Bool {
        attempt = nil
        let cursor = delivery?.cursor.description ?? progress.cursor
        let known = progress.failing.flatMap { $0.cursor == cursor ? $0 : nil }
        let attempts = (known?.attempts ?? 0) &+ 1
        let pause = max(HookProgress.pause(after: attempts) * random, .seconds(min(seconds, HookProgress.secondsMax)))
        notBefore = now + pause
        progress.failing = .init(
            cursor: cursor, attempts: attempts, since: known?.since ?? RFC3339.text(milliseconds: date.milliseconds),
            next: RFC3339.text(milliseconds: date.advanced(by: pause).milliseconds), reason: reason)
        return known == nil
    }
}

/// A secret with which deliveries are signed, as the specification Standard Webhooks has it.
struct HookSecret: Sendable {
    let text: String
    private let key: [UInt8]

    private static let prefix = "whsec_"

    init() {
        key = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        text = Self.prefix + Data(key).base64EncodedString()
    }

    init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let data = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            (24...64).contains(data.count)
        else { return nil }
        (self.text, key) = (text, Array(data))
    }

    /// The signature of a delivery: `v1,` and the base64 of the HMAC-SHA256; `seconds` count since 1970.
    func signature(of body: [UInt8], id: String, at seconds: Int64) -> String {
        let signed = Array("\(id).\(seconds).".utf8) + body
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard HMAC(EVP_sha256(), key, Int32(key.count), signed, signed.count, &digest, &count) != nil, count == 32
        else {
            preconditionFailure("libcrypto has no HMAC-SHA256")
        }
        return "v1," + Data(digest).base64EncodedString()
    }
}
