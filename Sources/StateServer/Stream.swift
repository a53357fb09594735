internal import MicroHTTP
internal import StateHTTP
internal import StateStore

/// Where a stream stands.
struct Stream: Sendable {
    /// What it needs when the last piece is out.
    enum Next: Equatable {
        case begin, follow
        case reset(ResetReason)
    }

    let request: StreamRequest
    let ends: ContinuousClock.Instant
    var next: Next
    /// The last version that has been looked at for it.
    var position: Version
    /// The content that its client has; nil where there was none.
    var tag: String?
    /// Whether it has once been given everything that there was.
    var isLive = false
    /// Whether more than the last piece could hold is waiting for it.
    private(set) var hasMore = false
    private var sent = ContinuousClock.now
    /// How long its client took for the last piece.
    private var delay = Duration.zero
    /// How long a client may take for a piece before it counts as slow.
    private static let patience = Duration.seconds(5)

    init(_ request: StreamRequest, _ head: HeadPosition, endsIn lifetime: Duration) {
        self.request = request
        // A restart, which ends all streams, is to look like any other time.
        ends = .now + lifetime * Double.random(in: 0.75...1)
        (position, next) = (head.head.version, .begin)
        if request.isLost || request.lastEpoch.map({ $0 != head.head.epoch }) ?? false { next = .reset(.lost) }
        switch request.source {
        case .value(let read):
            if let seen = read.atLeast, seen > head.head.version { next = .reset(.lost) }
        case .changes(let follow):
            switch follow.since {
            case .cursor(let cursor):
                if cursor.epoch == head.head.epoch { position = cursor.version } else { next = .reset(.lost) }
            case .oldest: position = head.oldest
            case .now, .never: break
            }
        }
    }

    /// What a stream of a value waits for.
    var condition: WaitCondition { tag.map { .otherThan(.tags([$0])) } ?? .present }

    /// Whether it had everything, and then took so long for a piece that it does not have everything any more.
    var isSlow: Bool { isLive && delay > Self.patience }

    /// Notes that the last piece is out.
    mutating func wasWritten() { delay = .now - sent }

    /// Notes a sign of life that says how far it has come.
    mutating func hasShownItself(at version: Version) { (position, sent) = (max(position, version), .now) }

    mutating func hasSent(_ reading: Reading) {
        (position, tag, next, sent, hasMore) = (reading.cursor.version, reading.encoded?.tag, .follow, .now, false)
    }

    mutating func hasSent(_ page: ChangesPage) {
        (position, next, sent, hasMore) = (page.next, .follow, .now, page.isMore)
        if !page.isMore { isLive = true }
    }
}

/// Where streams of commits stand that are told the same from here on.
struct Position: Hashable {
    /// One of theirs.
    let request: StreamRequest
    let since: Version

    static func == (left: Position, right: Position) -> Bool {
        left.since == right.since && (left.request === right.request || left.request.tellsSame(as: right.request))
    }

    func hash(into hasher: inout Hasher) {
        // The rest rarely differs where this does not.
        hasher.combine(since)
    }
}

extension StreamRequest {
    /// Whether streams that stand at one position are sent the same for both.
    fileprivate func tellsSame(as other: StreamRequest) -> Bool {
        guard case .changes(let mine) = source, case .changes(let others) = other.source else { return false }
        return format == other.format && mine.form == others.form && mine.limit == others.limit
            && mine.filter == others.filter && mine.scope.name == others.scope.name
    }

    /// The query of a stream of commits.
    func query(since version: Version) -> ChangesQuery? {
        guard case .changes(let follow) = source else { return nil }
        // A client that does not read keeps no more than this.
        return ChangesQuery(since: version, limit: follow.limit, weightMax: 256 << 10, filter: follow.filter)
    }
}

extension Stream {
    /// The position of a stream of commits that simply goes on; nil where there is more to it.
    var positionAbreast: Position? {
        guard case .changes = request.source, !isSlow else { return nil }
        switch next {
        case .begin, .follow: return Position(request: request, since: position)
        case .reset: return nil
        }
    }
}

extension [Exchange: Stream] {
    /// Changes a stream, if it still is one.
    mutating func update(_ exchange: Exchange, _ change: (inout Stream) -> Void) {
        guard let index = index(forKey: exchange) else { return }
        change(&values[index])
    }

    /// Notes that a stream's last piece is out, and returns it.
    mutating func written(_ exchange: Exchange) -> Stream? {
        guard let index = index(forKey: exchange) else { return nil }
        values[index].wasWritten()
        return values[index]
    }
}
