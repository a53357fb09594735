package import HTTPMessages
package import StateJSON
package import StateStore

/// The task of the request handler for a request.
///
/// The long cases are behind a reference, because the plan of each POST would be as long, and is handed on.
package enum Plan: Sendable {
    indirect case respond(Response)
    /// Make a description of a store, or its form that the request asks for; then ``Contract/response(to:)-(DocumentRequest)``.
    indirect case document(DocumentRequest)
    case dispatch(DispatchRequest)
    indirect case read(ReadRequest)
    indirect case changes(ChangesRequest)
    /// Read the commits before a cursor, or the newest ones; then ``Contract/response(to:_:)``.
    indirect case earlier(ChangesRequest, before: Cursor?)
    case stream(StreamRequest)
    /// Read entities of the state at one version; then ``Contract/response(to:_:at:now:)``.
    indirect case entities(EntitiesRequest)
    indirect case outcome(id: String, VisibleStore, Style)
    indirect case schedule(ScheduleRequest)
    case live, metrics
    case ready(isVerbose: Bool)
    case operations(Style)
    indirect case forks(ForkRequest)
    indirect case bisect(BisectRequest)
    /// Send a file of the page, or 404 without a file of this name.
    case file(String)
    case backup(Access)
}

package struct DocumentRequest: Sendable {
    let document: StoreDocuments.Name
    let store: VisibleStore
    let style: Style
    let coding: ContentCoding?
    let latest: Cursor
}

package enum Style: Sendable { case compact, pretty }

package struct DispatchRequest: Sendable {
    enum Form: Sendable { case one, lines }

    package enum Content: Sendable {
        case one(Transaction)
        case lines([Line])
    }

    package struct Line: Sendable {
        /// The number of the line, counted from 1 with the empty lines.
        package var number: Int
        package var content: Result<Transaction, Problem>
    }

    let options: DispatchOptions
    var conditions: DispatchConditions?
    package let content: Content

    package var store: VisibleStore { options.store }
    package var style: Style { options.style }
    /// The longest time that the client waits for the cascade to be complete, if it waits.
    package var wait: Wait? { options.wait }
    /// The tags of `If-Match`, and the place that they guard; nil without it.
    package var tagGuard: Transaction.Expectation? { conditions?.tagGuard }

    /// Whether it may change the state: it is not a dry run.
    package var commits: Bool {
        switch content {
        case .one(let transaction): transaction.purpose == .commit
        case .lines(let lines): lines.contains { (try? $0.content.get())?.purpose == .commit }
        }
    }

    /// Whether a second one has the answer of the first.
    package var isIdempotent: Bool { transaction?.idempotency != nil }

    /// The ID that the client gave to the only action, or the first; nil without one.
    package var clientID: String? { transaction?.items.first?.id }
    var transaction: Transaction? { if case .one(let transaction) = content { transaction } else { nil } }
}

/// The options in the head of a POST; requests with equal heads share one object.
final class DispatchOptions: Sendable {
    let form: DispatchRequest.Form
    let store: VisibleStore
    let style: Style
    let returning: Preferences.Return?
    let wait: Wait?
    /// Whether the request has an `Origin`, as each POST of a browser has.
    let isOfBrowser: Bool
    /// The parameter `path`, which says what If-Match or If-None-Match guards.
    let path: String?
    let purpose: Transaction.Purpose

    init(
        form: DispatchRequest.Form = .one, store: VisibleStore, style: Style = .compact,
        returning: Preferences.Return? = nil, wait: Wait? = nil, path: String? = nil,
        purpose: Transaction.Purpose = .commit, isOfBrowser: Bool = false
    ) {
        (self.form, self.store, self.style, self.returning) = (form, store, style, returning)
        (self.wait, self.path, self.purpose, self.isOfBrowser) = (wait, path, purpose, isOfBrowser)
    }
}

/// The demands of a POST by the fields that are its own, in an object because nearly no POST has one.
final class DispatchConditions: Sendable {
    let tagGuard: Transaction.Expectation?
    let absence: Transaction.Expectation?
    let key: String?
    let trace: String?

    init(tagGuard: Transaction.Expectation?, absence: Transaction.Expectation?, key: String?, trace: String?) {
        (self.tagGuard, self.absence, self.key, self.trace) = (tagGuard, absence, key, trace)
    }
}

package struct ReadRequest: Hashable, Sendable {
    /// The selection, as the whole store names it.
    package var selection: Selection
    package var store: VisibleStore
    /// `If-None-Match`: the tags of the content that the client has.
    package var known: TagSet?
    package var until: AwaitedValue?
    package var untilExists = false
    package var wait: Wait?
    /// How long the server debounces the answer to a wait.
    package var debounce: Duration?
    /// The oldest version that the answer may have.
    package var atLeast: Version?
    package var version: Version?
    package var keyed: KeyedQuery?
    package var explains = false
    package var style: Style
    package var coding: ContentCoding?
    package var name: RequestName

    package var requestID: RequestID { name.id }

    /// The condition that ends the wait; nil for a request that does not wait.
    package var condition: WatchCondition? {
        guard wait != nil else { return nil }
        if let until { return .equalTo(until.value) }
        return untilExists ? .present(otherThan: known ?? .tags([])) : known.map { .otherThan($0) }
    }
}

/// A value that a client waits for.
///
/// Requests with equal texts are equal: values that are equal have several texts, so that many would have one hash.
package struct AwaitedValue: Hashable, Sendable {
    let value: JSONValue

    package static func == (left: AwaitedValue, right: AwaitedValue) -> Bool { left.value.text == right.value.text }
    package func hash(into hasher: inout Hasher) { hasher.combine(value.text) }
}

/// A GET of the commits after a cursor.
package struct ChangesRequest: Hashable, Sendable {
    package enum Since: Hashable, Sendable {
        case cursor(Cursor), oldest, now
        /// Before everything: the client knows nothing. Only a keyed difference without `since` has it.
        case never
    }
    package enum Form: Sendable, Hashable {
        case patches
        /// A list of commits, each with the IDs of the entities that it changes.
        case keyed
        /// One keyed difference over all commits, of the entities below a pointer.
        case difference(JSONPointer)
    }
    package enum OnLost: Hashable, Sendable { case problem, snapshot }

    package var since: Since
    package var limit: Int
    package var filter: ChangesFilter
    package var store: VisibleStore
    package var form = Form.patches
    package var wait: Wait?
    /// How long the server debounces the answer to a wait.
    package var debounce: Duration?
    package var onLost = OnLost.problem
    /// The options of a read by the Durable Streams protocol beside the commits, or nil for the contract's own form.
    package var durable: DurableRead?
    package var style = Style.compact
    package var coding: ContentCoding?
    package var requestID: RequestID

    package func query(since version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, filter: filter)
    }
}

/// A GET that asks for a stream.
///
/// It is an object because each delivery to the stream refers to it.
package final class StreamRequest: Sendable {
    package enum Format: Sendable, Hashable { case events, lines }

    package enum Source: Hashable, Sendable {
        /// The value of a selection, and each new value.
        case value(ReadRequest)
        /// Every commit after a cursor.
        case changes(ChangesRequest)
    }

    package let source: Source
    package let format: Format
    package let lastEpoch: Epoch?
    /// Whether `Last-Event-ID` is no cursor.
    package let isLost: Bool
    /// How long the stream waits after a chunk before it looks for the next.
    package let debounce: Duration?
    /// The entities with which a state stream begins; nil for a stream that begins with commits or a value.
    package let snapshot: EntitiesRequest?

    /// The `lastID` is the value of `Last-Event-ID`.
    init(
        _ source: Source, _ format: Format, lastID: String? = nil, debounce: Duration? = nil,
        snapshot: EntitiesRequest? = nil
    ) {
        self.source = source
        self.format = format
        let cursor = lastID.flatMap { Cursor(text: $0) }
        (lastEpoch, isLost) = (cursor?.epoch, lastID != nil && cursor == nil)
        self.debounce = debounce
        self.snapshot = snapshot
    }

    package var durable: DurableRead? { if case .changes(let follow) = source { follow.durable } else { nil } }
}

package struct Wait: Hashable, Sendable {
    package var duration: Duration
    /// The whole seconds for `Preference-Applied`; set where the client used `Prefer` or the server cut the wait.
    package var applied: Int?
}
