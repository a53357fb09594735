package import HTTPMessages
package import StateStore

/// A read by the Durable Streams protocol.
///
/// The protocol is `PROTOCOL.md` of the repository `durable-streams/durable-streams`, as of June 2026.
package struct DurableRead: Hashable, Sendable {
    /// The content of the messages of the stream.
    package enum Content: Hashable, Sendable {
        /// A message for each commit.
        case commits
        /// A message of the State Protocol for each entity that a commit changes.
        case state(hasOldValues: Bool)
    }

    package var content: Content
    /// The offset as the request has it, `-1` or `now` included.
    var start: String
    var cursor: UInt64?
    var known: TagSet?
    var knownCompressed: Set<String>
    /// A name of what the client may see; nil for everything.
    var visibility: String?
    /// Whether every client may see what the answer says, so that shared caches may keep it.
    var isPublic: Bool

    func tag(to next: String) -> String { "\(start):\(next)\(visibility.map { ":\($0)" } ?? "")" }

    /// The offset behind a version.
    package func offset(_ cursor: Cursor) -> StreamOffset { StreamOffset(cursor, content == .commits ? nil : .behind) }
}

/// A GET of the entities of one version, with which a state stream begins.
package struct EntitiesRequest: Sendable {
    /// The version whose entities are read; nil for the latest.
    package var cursor: Cursor?
    /// How many entities the client has.
    package var position: Int
    /// Whether the read is a long-poll, which finds something at once.
    var isLive: Bool
    package var read: DurableRead
    /// The store that the path names.
    package var store: VisibleStore
    /// The content coding that the client prefers; nil for none.
    package var coding: ContentCoding?
    package var requestID: RequestID
}

/// The time as live reads tell it.
///
/// Time is divided into intervals of 20 seconds from 9 October 2024 on (section 10.1 of the protocol). A client echoes the
/// interval of its last answer, so that a cache keeps no answer for longer than an interval.
package struct StreamTime: Sendable {
    private static let start = Timestamp(milliseconds: 1_728_432_000_000)
    private static let length: Int64 = 20_000
    private let interval: UInt64
    private let jitter: UInt64

    /// Makes the time of an answer.
    ///
    /// - Parameter random: a random number from 0 to 1.
    package init(_ now: Timestamp, random: Double) {
        interval = UInt64(max(0, (now.milliseconds &- Self.start.milliseconds) / Self.length))
        // 1 to 3600 seconds, in intervals.
        jitter = 1 + UInt64(random * 179)
    }

    /// The interval that an answer names: never the one that the client has named, and never one before it.
    func cursor(after known: UInt64?) -> String {
        guard let known, known >= interval else { return String(interval) }
        return String(known + jitter)
    }
}
