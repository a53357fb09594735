package import HTTPMessages
package import StateJSON
package import StateStore

/// The task of the request handler; the long cases are behind a reference, because each plan would be as long.
package enum Plan: Sendable {
    indirect case respond(Response)
    indirect case document(DocumentRequest)
    case dispatch(DispatchRequest)
    indirect case read(ReadRequest)
    indirect case changes(ChangesRequest)
    /// Read the commits before a cursor, or the newest ones; then ``Contract/response(to:_:)``.
    indirect case earlier(ChangesRequest, before: Cursor?)
    case stream(StreamRequest)
    /// Read entities of the version of the request, or of the latest.
    indirect case entities(ChangesRequest, DurableRead)
    indirect case outcome(id: String, VisibleStore, Style)
    indirect case schedule(ScheduleRequest)
    case live, metrics
    case ready(isVerbose: Bool)
    case operations(Style)
    indirect case forks(ForkRequest)
    indirect case bisect(BisectRequest)
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
    package var wait: Wait? { options.wait }
    package var tagGuard: Transaction.Expectation? { conditions?.tagGuard }

    package var commits: Bool {
        switch content {
        case .one(let transaction): transaction.purpose == .commit
        case .lines(let lines): lines.contains { (try? $0.content.get())?.purpose == .commit }
        }
    }

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
    package var selection: Selection
    package var store: VisibleStore
    package var known: TagSet?
    package var until: AwaitedValue?
    package var untilExists = false
    package var wait: Wait?
    package var debounce: Duration?
    package var atLeast: Version?
    package var version: Version?
    package var keyed: KeyedQuery?
    package var explains = false
    package var style: Style
    package var coding: ContentCoding?
    package var name: RequestName

    package var condition: WatchCondition? {
        guard wait != nil else { return nil }
        if let until { return .equalTo(until.value) }
        return untilExists ? .present(otherThan: known ?? .tags([])) : known.map { .otherThan($0) }
    }
}

/// A value that a client waits for, equal by its text: equal values have several texts, and many would have one hash.
package struct AwaitedValue: Hashable, Sendable {
    let value: JSONValue

    package static func == (left: AwaitedValue, right: AwaitedValue) -> Bool { left.value.text == right.value.text }
    package func hash(into hasher: inout Hasher) { hasher.combine(value.text) }
}

package struct ChangesRequest: Hashable, Sendable {
    package enum Since: Hashable, Sendable {
        case cursor(Cursor), oldest, now
        /// Before everything: the client knows nothing. Only a keyed difference without `since` has it.
        case never
    }
    package enum Form: Sendable, Hashable {
        case patches
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
    package var debounce: Duration?
    package var onLost = OnLost.problem
    package var durable: DurableRead?
    package var style = Style.compact
    package var coding: ContentCoding?
    package var name: RequestName

    package var cursor: Cursor? { if case .cursor(let cursor) = since { cursor } else { nil } }

    package func query(since version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, filter: filter)
    }
}

/// A GET that asks for a stream, an object because each delivery to the stream refers to it.
package final class StreamRequest: Sendable {
    package enum Format: Sendable, Hashable { case events, lines }

    package enum Source: Hashable, Sendable {
        case value(ReadRequest)
        case changes(ChangesRequest)
    }

    package let source: Source
    package let format: Format
    package let lastEpoch: Epoch?
    package let isLost: Bool
    package let debounce: Duration?

    init(_ source: Source, _ format: Format, lastID: String? = nil, debounce: Duration? = nil) {
        self.source = source
        self.format = format
        let cursor = lastID.flatMap { Cursor(text: $0) }
        (lastEpoch, isLost) = (cursor?.epoch, lastID != nil && cursor == nil)
        self.debounce = debounce
    }

    package var durable: DurableRead? { if case .changes(let follow) = source { follow.durable } else { nil } }
}

package struct Wait: Hashable, Sendable {
    package var duration: Duration
    /// The whole seconds for `Preference-Applied`; set where the client used `Prefer` or the server cut the wait.
    package var applied: Int?
}
