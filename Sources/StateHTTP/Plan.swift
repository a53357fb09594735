package import HTTPMessages
package import StateJSON
package import StateStore

/// The task of the request handler for a request.
///
/// The long cases are behind a reference, because the plan of each POST would be as long, and is handed on.
package enum Plan: Sendable {
    /// Send this response; nothing else has to be done.
    indirect case respond(Response)
    /// Make a description of a store, or its form that the request asks for; then ``Contract/response(to:)-(DocumentRequest)``.
    indirect case document(DocumentRequest)
    /// Dispatch transactions to the store; then ``Contract/response(to:outcome:cascade:latest:requestID:)``.
    case dispatch(DispatchRequest)
    /// Read a selection, now or later; then ``Contract/response(to:_:)``.
    indirect case read(ReadRequest)
    /// Read the commits after a cursor, now or later; then ``Contract/response(to:_:)``.
    indirect case changes(ChangesRequest)
    /// Read the commits before a cursor, or the newest ones; then ``Contract/response(to:_:)``.
    indirect case earlier(ChangesRequest, before: Cursor?)
    /// Begin a stream; then ``Contract/chunk(of:_:isFirst:)`` and its siblings.
    case stream(StreamRequest)
    /// Read entities of the state at one version; then ``Contract/response(to:_:at:now:)``.
    indirect case entities(EntitiesRequest)
    /// Find the commit of an action; then ``Contract/response(toOutcomeOf:_:_:latest:style:requestID:)``.
    indirect case outcome(id: String, VisibleStore, Style)
    /// List the scheduled actions; then ``Contract/response(to:in:)``.
    indirect case schedule(ScheduleRequest)
    /// Answer the probe `/livez`.
    case live
    /// Answer the probe `/readyz`.
    case ready(ReadinessForm)
    /// Answer `/metrics`.
    case metrics
    /// Say what the server is doing.
    case operations(Style)
    /// Do something with forks.
    indirect case forks(ForkRequest)
    /// Search the first commit after which a test holds; then ``Contract/response(to:found:looks:latest:)``.
    indirect case bisect(BisectRequest)
    /// Send a file of the page, or 404 without a file of this name.
    case file(String)
    /// Send a backup of the journal; then ``Contract/response(toBackupAt:)``.
    case backup(Access)
}

/// The form of an answer to `/readyz`.
package enum ReadinessForm: Sendable {
    /// A word, or the problem.
    case plain
    /// A line for each thing that serving depends on.
    case verbose
}

/// A GET of a description of a store.
package struct DocumentRequest: Sendable {
    let document: StoreDocuments.Name
    let store: VisibleStore
    let style: Style
    let coding: ContentCoding?
    let latest: Cursor
}

/// The layout of a JSON body.
package enum Style: Sendable {
    /// Without white space.
    case compact
    /// Indented, for people.
    case pretty
}

/// A POST of actions.
package struct DispatchRequest: Sendable {
    enum Form: Sendable { case one, lines }

    /// The transactions that the body holds.
    package enum Content: Sendable {
        /// One action, or a batch as one.
        case one(Transaction)
        /// NDJSON: a transaction for each line.
        case lines([Line])
    }

    /// A line of an NDJSON body.
    package struct Line: Sendable {
        /// The number of the line, counted from 1 with the empty lines.
        package var number: Int
        /// The transaction of the line, or the fault in the line.
        package var content: Result<Transaction, Problem>

        /// Joins a line number and the content of the line.
        package init(_ number: Int, _ content: Result<Transaction, Problem>) {
            self.number = number
            self.content = content
        }
    }

    let options: DispatchOptions
    /// The demands of the fields that are the request's own; nil for nearly every POST.
    var conditions: DispatchConditions?
    package let content: Content

    /// The store that the path names.
    package var store: VisibleStore { options.store }
    package var style: Style { options.style }
    /// The longest time that the client waits for the cascade to be complete, if it waits.
    package var wait: Wait? { options.wait }
    /// The tags of `If-Match`, and the place that they guard; nil without it.
    package var tagGuard: Transaction.TagGuard? { conditions?.tagGuard }

    /// Whether it may change the state: it is not a dry run.
    package var commits: Bool {
        switch content {
        case .one(let transaction): transaction.purpose == .commit
        case .lines(let lines): lines.contains { (try? $0.content.get())?.purpose == .commit }
        }
    }

    /// Whether a second one has the answer of the first.
    package var isIdempotent: Bool {
        guard case .one(let transaction) = content else { return false }
        return transaction.idempotency != nil
    }

    /// The ID that the client gave to the only action, or the first; nil without one.
    package var clientID: String? {
        guard case .one(let transaction) = content else { return nil }
        return transaction.items.first?.id
    }
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
        self.isOfBrowser = isOfBrowser
        self.form = form
        self.store = store
        self.style = style
        self.returning = returning
        self.wait = wait
        self.path = path
        self.purpose = purpose
    }
}

/// The demands of a POST by the fields that are its own, in an object because nearly no POST has one.
final class DispatchConditions: Sendable {
    let tagGuard: Transaction.TagGuard?
    let absence: Transaction.Expectation?
    let key: String?
    let trace: String?

    init(tagGuard: Transaction.TagGuard?, absence: Transaction.Expectation?, key: String?, trace: String?) {
        (self.tagGuard, self.absence, self.key, self.trace) = (tagGuard, absence, key, trace)
    }
}

/// A GET of a selection.
package struct ReadRequest: Hashable, Sendable {
    /// The selection, as the whole store names it.
    package var selection: Selection
    /// The store that the path names.
    package var store: VisibleStore
    /// `If-None-Match`: the tags of the content that the client has.
    package var known: TagSet?
    /// The value that the client waits for.
    package var until: AwaitedValue?
    /// Whether the client waits for a value that is there.
    package var untilExists = false
    /// The longest time that the client waits for other content, or for ``until``, if it waits.
    package var wait: Wait?
    /// How long the server debounces the answer to a wait.
    package var debounce: Duration?
    /// The oldest version that the answer may have.
    package var atLeast: Version?
    /// The past version that the client asks for.
    package var version: Version?
    /// The answer that the client knows, if it asks for the difference to it.
    package var keyed: KeyedQuery?
    /// Whether the query says what it takes, for which it is evaluated anew.
    package var explains = false
    package var style: Style
    /// The content coding that the client prefers; nil for none.
    package var coding: ContentCoding?
    package var name: RequestName

    /// The request's ID.
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
    /// The start of the commits that the client asks for.
    package enum Since: Hashable, Sendable {
        case cursor(Cursor), oldest, now
        /// Before everything: the client knows nothing. Only a keyed difference without `since` has it.
        case never
    }
    /// The form of the changes in the answer.
    package enum Form: Sendable, Hashable {
        /// A list of commits, each with its patch.
        case patches
        /// A list of commits, each with the IDs of the entities that it changes.
        case keyed
        /// One keyed difference over all commits, of the entities below a pointer.
        case difference(JSONPointer)
    }
    /// The answer to a cursor that is lost or expired.
    package enum OnLost: Hashable, Sendable { case problem, snapshot }

    package var since: Since
    /// The most commits in one answer.
    package var limit: Int
    package var filter: ChangesFilter
    /// The store that the path names.
    package var store: VisibleStore
    package var form: Form
    package var wait: Wait?
    /// How long the server debounces the answer to a wait.
    package var debounce: Duration?
    package var onLost: OnLost
    /// The options of a read by the Durable Streams protocol beside the commits, or nil for the contract's own form.
    package var durable: DurableRead?
    package var style: Style
    /// The content coding that the client prefers; nil for none.
    package var coding: ContentCoding?
    package var requestID: RequestID

    /// The query for the commits after a version.
    package func query(since version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, filter: filter)
    }
}

/// A GET that asks for a stream.
///
/// It is an object because each delivery to the stream refers to it.
package final class StreamRequest: Sendable {
    /// The format of the stream.
    package enum Format: Sendable, Hashable {
        /// Server-sent events: `text/event-stream`.
        case events
        /// NDJSON: `application/x-ndjson`.
        case lines
    }

    /// The content of the stream.
    package enum Source: Hashable, Sendable {
        /// The value of a selection, and each new value.
        case value(ReadRequest)
        /// Every commit after a cursor.
        case changes(ChangesRequest)
    }

    package let source: Source
    package let format: Format
    /// The epoch of `Last-Event-ID`; nil without one.
    package let lastEpoch: Epoch?
    /// Whether `Last-Event-ID` is no cursor.
    package let isLost: Bool
    /// How long the stream waits after a chunk before it looks for the next.
    package let debounce: Duration?
    /// The entities with which a state stream begins; nil for a stream that begins with commits or a value.
    package let snapshot: EntitiesRequest?

    init(
        source: Source, format: Format, lastEpoch: Epoch?, isLost: Bool, debounce: Duration?,
        snapshot: EntitiesRequest? = nil
    ) {
        self.source = source
        self.format = format
        self.lastEpoch = lastEpoch
        self.isLost = isLost
        self.debounce = debounce
        self.snapshot = snapshot
    }

    /// The options of a stream of the Durable Streams protocol, or nil for the contract's own streams.
    package var durable: DurableRead? {
        if case .changes(let follow) = source { follow.durable } else { nil }
    }
}

/// How long a client waits.
package struct Wait: Hashable, Sendable {
    package var duration: Duration
    /// The whole seconds for `Preference-Applied`; set where the client used `Prefer` or the server cut the wait.
    package var applied: Int?
}
