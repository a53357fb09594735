package import HTTPMessages
package import StateJSON
package import StateStore

/// What has to be done for a request.
package enum Plan: Sendable {
    /// Nothing has to be done.
    case respond(Response)
    /// Hand actions to the store; then ``Contract/response(to:outcomes:cascade:latest:requestID:)``.
    case dispatch(DispatchRequest)
    /// Read a selection, now or later; then ``Contract/response(to:_:)``.
    case read(ReadRequest)
    /// Read the commits after a position, now or later; then ``Contract/response(to:_:)``.
    case changes(ChangesRequest)
    /// Begin a stream; then ``Contract/piece(of:_:)`` and the others.
    case stream(StreamRequest)
    /// Find what became of an action; then ``Contract/response(toOutcomeOf:_:_:latest:style:requestID:)``.
    case outcome(id: String, Scope, Style)
    /// Whether the process lives: as long as it answers, it does.
    case live
    /// Whether the process takes actions.
    case ready
    /// The operator's figures.
    case metrics
}

/// How a JSON body is laid out.
package enum Style: Sendable {
    /// Without white space.
    case compact
    /// For people.
    case pretty
}

/// A POST of actions.
package final class DispatchRequest: Sendable {
    /// What the body is to be read as.
    enum Form: Sendable { case one, lines }

    /// What the body holds.
    package enum Content: Sendable {
        /// One action, or a batch as one.
        case one(Transaction)
        /// Lines that stand each for itself.
        case lines([Line])
    }

    /// A line of a body.
    package struct Line: Sendable {
        /// Counted from 1, empty lines too.
        package var number: Int
        /// What it asks of the store, or why it cannot ask anything.
        package var content: Result<Transaction, Problem>

        /// Makes a line.
        package init(_ number: Int, _ content: Result<Transaction, Problem>) {
            self.number = number
            self.content = content
        }
    }

    /// What its head says.
    let options: DispatchOptions
    package let content: Content

    init(options: DispatchOptions, content: Content) {
        self.options = options
        self.content = content
    }

    /// The store that the client sees.
    var scope: Scope { options.scope }
    var style: Style { options.style }
    /// How long the client waits for what the action causes to be complete.
    package var wait: Wait? { options.wait }
}

/// How a POST wants its actions handled, as its head says: the same for all that have the same head.
final class DispatchOptions: Sendable {
    let form: DispatchRequest.Form
    /// The store that the client sees.
    let scope: Scope
    let style: Style
    let returning: Preferences.Return?
    let wait: Wait?
    let tagGuard: Transaction.TagGuard?
    let key: String?
    let purpose: Transaction.Purpose

    init(
        form: DispatchRequest.Form, scope: Scope, style: Style, returning: Preferences.Return?, wait: Wait?,
        tagGuard: Transaction.TagGuard?, key: String?, purpose: Transaction.Purpose
    ) {
        self.form = form
        self.scope = scope
        self.style = style
        self.returning = returning
        self.wait = wait
        self.tagGuard = tagGuard
        self.key = key
        self.purpose = purpose
    }
}

/// A GET of a selection.
package struct ReadRequest: Sendable {
    /// Named as in the whole store.
    package var selection: Selection
    /// The store that the client sees.
    package var scope: Scope
    /// `If-None-Match`: content that the client has already.
    package var known: TagSet?
    /// The value that the client waits for.
    package var until: JSONValue?
    /// How long the client waits for other content, or for that value.
    package var wait: Wait?
    /// How long an answer that has been waited for is put off, so that a burst of changes becomes one.
    package var debounce: Duration?
    /// The version that the answer must not be older than.
    package var atLeast: Version?
    /// The version that the answer must be of.
    package var version: Version?
    package var style: Style
    package var requestID: String

    /// What it waits for, if it waits.
    package var condition: WatchCondition? {
        guard wait != nil else { return nil }
        return until.map { .equalTo($0) } ?? known.map { .otherThan($0) }
    }
}

/// A GET of the commits after a position.
package struct ChangesRequest: Sendable {
    /// Where the follower stands.
    package enum Since: Sendable, Equatable {
        case cursor(Cursor), oldest, now
        /// It has seen nothing yet.
        case never
    }
    /// How the changes are told.
    package enum Form: Sendable, Hashable {
        /// Commit by commit, each with its patch.
        case patches
        /// Commit by commit, each with the IDs of the entities that it concerns.
        case keyed
        /// All at once, as the IDs of the entities in a place.
        case difference(JSONPointer)
    }
    /// What is answered when its position is gone.
    package enum OnLost: Sendable, Equatable { case problem, snapshot }

    package var since: Since
    package var limit: Int
    package var filter: ChangesFilter
    /// The store that the client sees.
    package var scope: Scope
    package var form: Form
    package var wait: Wait?
    /// How long an answer that has been waited for is put off, so that a burst of changes becomes one.
    package var debounce: Duration?
    package var onLost: OnLost
    package var style: Style
    package var requestID: String

    /// The query from a position.
    package func query(since version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, filter: filter)
    }
}

/// A GET that is answered without end.
///
/// An object: it is handed from place to place as long as the stream lives.
package final class StreamRequest: Sendable {
    /// How events are written.
    package enum Format: Sendable, Hashable {
        /// `text/event-stream`, as the HTML standard has it.
        case events
        /// `application/x-ndjson`.
        case lines
    }

    /// What is streamed.
    package enum Source: Sendable {
        /// The value of a selection, each time that it has changed.
        case value(ReadRequest)
        /// Every commit after a position.
        case changes(ChangesRequest)
    }

    package let source: Source
    package let format: Format
    /// The history that the client says it stands in, where it says so.
    package let lastEpoch: Epoch?
    /// Whether the position that the client names is not even a cursor.
    package let isLost: Bool
    /// How long changes are collected before they are sent.
    package let debounce: Duration?

    init(source: Source, format: Format, lastEpoch: Epoch?, isLost: Bool, debounce: Duration?) {
        self.source = source
        self.format = format
        self.lastEpoch = lastEpoch
        self.isLost = isLost
        self.debounce = debounce
    }

    /// The name of the request in problems and logs.
    package var requestID: String {
        switch source {
        case .value(let read): read.requestID
        case .changes(let follow): follow.requestID
        }
    }
}

/// How long a client waits, and whether that is less than it has asked for.
package struct Wait: Sendable, Equatable {
    package var duration: Duration
    /// What is said in `Preference-Applied`, where the client used `Prefer` or asked for too much.
    package var applied: Int?
}
