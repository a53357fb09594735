package import StateJSON

/// One exchange that waits for the store.
///
/// The ``WatchHub`` calls the functions of its events under the lock; the hub's caller or the receiver carries the
/// actions out.
package struct Watch: Sendable {
    /// The number of the exchange, unique in its server.
    package typealias ID = UInt64

    package enum Subject: Sendable {
        case value(Selection, until: WatchCondition)
        case version(Version)
        /// The commits after ``Watch/examinedVersion`` that a query asks for, whose own version counts for nothing.
        case changes(ChangesQuery)
        case cascade
    }

    package enum State: Sendable, Hashable, CaseIterable {
        /// The receiver prepares its chunk outside the hub: it reads the journal, or encodes a large value.
        case preparing
        case parked
        /// There is a change, and the answer is put off so that a burst of changes becomes one answer.
        case debouncing
        case sending
        case done
    }

    package enum Action: Sendable, Hashable {
        case nothing
        case answer
        case answerTimedOut
        /// Call ``WatchHub/timers(_:)`` after this time.
        case startTimer(Duration)
        /// Examine what is newer than ``Watch/examinedVersion``. Only the hub gets this action, for a stream that is behind.
        case examine
        /// Read the content of this chunk outside the hub, and call ``WatchHub/prepared(_:_:_:hasMore:)``.
        case prepare(Chunk)
        case send(Chunk)
        /// Send a heartbeat, with the examined version where the stream has not yet sent it.
        case heartbeat(movedTo: Version?)
        case end
    }

    package enum Chunk: Sendable, Hashable {
        case first
        case next
        case reset(ResetReason)
        /// Some entities of the version with which a state stream begins; the receiver knows which.
        case snapshot(isLast: Bool)
    }

    package enum Route: Int, Sendable, CaseIterable {
        case state, view, changes, action
    }

    package let id: ID
    /// The route of the request; the hub only counts by it.
    package let route: Route
    /// The client's address, by which the hub limits the watches of one client.
    package let client: String
    package let receiver: any WatchReceiver
    package let request: any AnyObject & Sendable
    package private(set) var isStream = false
    /// How long an answer is put off after a change; nil for not at all.
    package let debounce: Duration?
    package private(set) var endsAt: Instant?

    package internal(set) var subject: Subject
    package internal(set) var state = State.preparing
    package internal(set) var examinedVersion: Version?
    /// The version up to which the client of a stream knows that it has everything.
    var toldVersion: Version?
    package internal(set) var chunk = Chunk.first
    var isBehind = false
    var hasMore = false
    var isLive = false
    /// Whether the client of a stream learns at once, and not with the heartbeat, that no commit behind it concerns it.
    private(set) var tellsProgress = false
    var mustEnd = false
    var sentAt: Instant?
    /// Whether the client took longer than ``patience`` for a chunk after the stream was once up to date.
    var isSlow = false
    /// The outcome of a waiting POST's transaction; nil before its turn.
    package internal(set) var outcome: Outcome?

    /// A client that takes longer for a chunk counts as slow.
    static let patience = Duration.seconds(5)

    package init(
        _ id: ID, client: String, receiver: any WatchReceiver, request: any AnyObject & Sendable, subject: Subject,
        route: Route = .state, examinedVersion: Version? = nil, debounce: Duration? = nil
    ) {
        self.id = id
        self.route = route
        self.client = client
        self.receiver = receiver
        self.request = request
        self.subject = subject
        self.examinedVersion = examinedVersion
        self.debounce = debounce
    }

    /// The watch of a stream whose head the transport is sending, and whose chunks begin with this one.
    package func ofStream(first chunk: Chunk = .first, tellsProgress: Bool = false, endsAt: Instant) -> Watch {
        var watch = self
        (watch.isStream, watch.endsAt, watch.tellsProgress) = (true, endsAt, tellsProgress)
        // The opening of a stream of commits names the cursor that it begins at.
        watch.toldVersion = examinedVersion
        (watch.isBehind, watch.state, watch.chunk) = (true, .sending, chunk)
        return watch
    }

    var valueBytes: Int { wanted?.memoryBytes ?? 0 }

    /// The only value that the watch waits for, which may stand for one turn only, or nil if it waits for any change.
    var wanted: JSONValue? { if case .value(_, let condition) = subject { condition.wanted } else { nil } }
}

package enum ResetReason: String, Sendable {
    /// The client's cursor belongs to another history, or is above the latest version.
    case lost = "cursor-lost"
    case expired = "cursor-expired"
    case slow = "slow-reader"
    case damaged = "journal-damaged"
}

package enum WatchCondition: Sendable {
    /// A value with another tag than these, or no value.
    case otherThan(TagSet)
    /// A value that equals this one as JSON, in any spelling.
    case equalTo(JSONValue)
    case present(otherThan: TagSet)

    /// The cost of ``equalTo(_:)`` is that of parsing the value and comparing it with another one.
    package func isMet(by encoded: Encoded?) -> Bool {
        switch self {
        // A selection without a value has other content than every tag names, so it meets the condition.
        case .otherThan(let tags): !tags.contains(encoded?.tag)
        case .equalTo(let wanted): encoded?.value == wanted
        case .present(let tags): encoded.map { !tags.contains($0.tag) } ?? false
        }
    }

    /// Whether a value with this tag meets the condition; nil where the tag does not tell.
    func isMet(byTag tag: String) -> Bool? {
        switch self {
        case .otherThan(let tags), .present(let tags): !tags.contains(tag)
        case .equalTo: nil
        }
    }

    var wanted: JSONValue? { if case .equalTo(let value) = self { value } else { nil } }
}

package protocol WatchReceiver: AnyObject, Sendable {
    /// Answers, sends or starts timers as the delivery says, outside the hub's lock.
    func receive(_ delivery: Delivery)
}

package struct Delivery: Sendable {
    package enum Change: Sendable {
        case latest(Cursor)
        case value(Reading)
        case changes(ChangesPage, since: Version)
        /// There are commits after a version that are not all in memory, or that are many to examine.
        case notInMemory(since: Version)
        case outcome(Outcome?)
    }

    package let change: Change
    package let action: Watch.Action
    /// The requests of the watches, in the order of their IDs; never empty.
    package let requests: [any AnyObject & Sendable]
}
