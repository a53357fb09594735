package import StateJSON

/// One exchange that waits for something of the store: a long-poll, a stream, a wait for a version or a value, or a POST
/// that waits for its cascade.
///
/// A value with one state. Each event is a mutating function that takes the time and returns what has to be done; the
/// ``WatchHub`` calls them under its lock, and the caller of the hub carries the actions out.
package struct Watch: Sendable {
    /// The number of the exchange, unique in its server.
    package typealias ID = UInt64

    /// What a watch looks at.
    package enum Subject: Sendable {
        /// The value of a selection, until it meets a condition.
        case value(Selection, until: WatchCondition)
        /// The store's version, until it is reached.
        case version(Version)
        /// The commits after ``Watch/position``.
        case changes(ChangesFilter, limit: Int, weightMax: Int)
        /// The cascade of the commit that the exchange asks for.
        case cascade
    }

    /// Where a watch stands.
    package enum State: Sendable, Hashable, CaseIterable {
        /// What it needs is being read elsewhere: from the journal, or by encoding much.
        case preparing
        /// It is in the hub's index.
        case parked
        /// Its news has come and is held back, so that a burst of changes becomes one answer.
        case debouncing
        /// A stream's chunk is on its way to the client.
        case sending
        /// Nothing more happens.
        case done
    }

    /// What the caller of an event has to do.
    package enum Action: Sendable, Hashable {
        case nothing
        /// Answer with the news.
        case answer
        /// Answer that the time is up.
        case answerTimedOut
        /// Call ``WatchHub/timers(_:)`` after this time.
        case startTimer(Duration)
        /// Look at what is newer than ``Watch/position``: the stream is behind. Only the hub sees this.
        case look
        /// Read elsewhere what a stream needs for this chunk, and call ``WatchHub/prepared(_:_:_:hasMore:)``.
        case prepare(Chunk)
        /// Send the client of a stream the news.
        case send(Chunk)
        /// Send a sign of life, with the version that the stream has come to where that is news.
        case heartbeat(movedTo: Version?)
        /// End the stream behind what has been sent.
        case end
    }

    /// What a stream's client is sent.
    package enum Chunk: Sendable, Hashable {
        /// The first value, or the first commits.
        case first
        /// Another value, or the next commits.
        case next
        /// Why the client has to begin again, and the value to begin with.
        case reset(ResetReason)
    }

    package let id: ID
    /// The client's address: each client has a share of the watches.
    package let client: String
    /// What carries out the actions.
    package let receiver: any WatchReceiver
    /// What the receiver knows of the exchange; the hub hands it back and does not look inside.
    package let request: any AnyObject & Sendable
    package let isStream: Bool
    /// How long news is held back.
    package let debounce: Duration?
    /// When a stream ends by itself.
    package let endsAt: Instant?

    package internal(set) var subject: Subject
    package internal(set) var state = State.preparing
    /// The newest version that the watch has looked at, or nil where it has not looked yet.
    package internal(set) var position: Version?
    /// The version up to which the client of a stream knows that it has been told everything.
    var toldVersion: Version?
    /// What the next chunk of a stream is.
    package internal(set) var chunk = Chunk.first
    /// Whether something has come since the last look.
    var isBehind = false
    /// Whether the last chunk did not hold everything there was.
    var hasMore = false
    /// Whether a stream has once been sent everything there was.
    var isLive = false
    /// Whether the stream ends when its chunk is out.
    var mustEnd = false
    /// When the last chunk was given to the transport.
    var sentAt: Instant?
    /// Whether the client has had everything, and then took longer for a chunk than the server's patience.
    var isSlow = false
    /// What became of the action of a POST that waits.
    package internal(set) var outcome: Outcome?

    /// How long a client may take for a chunk before it counts as slow.
    static let patience = Duration.seconds(5)

    /// Describes a wait that is answered once.
    package init(
        _ id: ID, client: String, receiver: any WatchReceiver, request: any AnyObject & Sendable, subject: Subject,
        position: Version? = nil, debounce: Duration? = nil
    ) {
        self.id = id
        self.client = client
        self.receiver = receiver
        self.request = request
        self.subject = subject
        self.position = position
        self.debounce = debounce
        isStream = false
        endsAt = nil
    }

    /// Describes a stream, whose head is on its way to the client.
    package init(
        stream id: ID, client: String, receiver: any WatchReceiver, request: any AnyObject & Sendable,
        subject: Subject, position: Version?, reset: ResetReason?, debounce: Duration?, endsAt: Instant
    ) {
        self.id = id
        self.client = client
        self.receiver = receiver
        self.request = request
        self.subject = subject
        self.position = position
        self.debounce = debounce
        self.endsAt = endsAt
        isStream = true
        // The opening of a stream of commits names the cursor that it begins at.
        toldVersion = position
        isBehind = true
        state = .sending
        if let reset { chunk = .reset(reset) }
    }
}

/// Why a stream begins again.
package enum ResetReason: Sendable, Hashable {
    /// The client's cursor belongs to another history.
    case lost
    /// The commits after the cursor are no longer kept.
    case expired
    /// The client reads so slowly that the history has left it behind.
    case slow
}

/// What a watch of a value waits for.
package enum WatchCondition: Sendable {
    /// Content with another tag than these.
    case otherThan(TagSet)
    /// A value that equals this one, in any spelling.
    case equalTo(JSONValue)
    /// Any content, where there is none.
    case present

    /// Whether a value meets the condition; nil where the selection has no value.
    package func isMet(by encoded: Encoded?) -> Bool { isMet(by: encoded) { encoded?.value } }

    /// Whether a value meets the condition, with a tree that several watches share.
    func isMet(by encoded: Encoded?, tree: () -> JSONValue?) -> Bool {
        switch self {
        // A client that waits for content that is gone, or that is other content already, is answered.
        case .otherThan(let tags): !tags.contains(encoded?.tag)
        case .equalTo(let wanted): tree() == wanted
        case .present: encoded != nil
        }
    }
}

/// Carries out what a change means for the watches that it has registered.
package protocol WatchReceiver: AnyObject, Sendable {
    /// Answers, sends or starts timers as the delivery says, outside the hub's lock.
    func receive(_ delivery: Delivery)
}

/// The watches for which one change means the same, in the order of their IDs.
package struct Delivery: Sendable {
    /// What has come.
    package enum News: Sendable {
        /// Nothing beside the state at this instant.
        case latest(Cursor)
        /// The value of the selection.
        case value(Reading)
        /// The commits after a version.
        case changes(ChangesPage, since: Version)
        /// There are commits after a version, but not all of them are in memory.
        case notInMemory(since: Version)
        /// What became of the action of a POST; nil before its turn.
        case outcome(Outcome?)
    }

    package let news: News
    package let action: Watch.Action
    /// The requests of the watches, in the order of their IDs; never empty.
    package let requests: [any AnyObject & Sendable]
}
