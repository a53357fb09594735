internal import HTTPMessages
internal import HTTPTypes
internal import Queries
internal import StateJSON
internal import StateStore

extension Contract {
    /// ``ViewParameters/reservedNames`` has each of these names.
    static let parametersOfViews = Set(
        (["wait", "until", "until-exists", "debounce", "at-least", "version", "pretty"] + parametersOfQueries)
            .map { ExactText($0) })
    static let parametersOfState = parametersOfViews.union(["as", "since"])

    func read(_ named: Selection, _ routed: RoutedRequest) throws(Problem) -> Plan {
        var selection = named
        let (request, target, store) = (routed.request, routed.target, routed.store)
        if let options = try onlyReads(request, hint: "an action changes the state: POST \(store.path)/actions") {
            return .respond(options)
        }
        let parameters: Parameters
        switch selection {
        case .pointer, .hidden: parameters = try Parameters(target, known: Self.parametersOfState)
        case .view(let name, _):
            let own = schemas.addresses[name]?.names ?? []
            parameters = try Parameters(target, known: Self.parametersOfViews.union(own))
            selection = try self.selection(ofView: name, parameters, store.access)
        case .query: parameters = try Parameters(target, known: Self.parametersOfViews)
        }
        // A tag that is misspelled is refused even if no tag counts.
        let known = try knownTags(request)
        switch selection {
        case .pointer(let pointer), .hidden(let pointer):
            let isQuery = Self.parametersOfQueries.contains(where: parameters.has)
            let isDifference = try isKeyed(parameters)
            if isDifference, !isQuery { return .changes(try difference(at: pointer, routed, parameters)) }
        case .view, .query: break
        }
        let isKeyed = try isKeyed(parameters)
        guard isKeyed || !parameters.has("since") else {
            throw .badParameter("since goes with as=keyed; without it, If-None-Match says what is known")
        }
        var read = ReadRequest(
            selection: selection, store: store, wait: try wait(parameters, request), style: try parameters.style(),
            coding: coding(of: request), name: routed.circumstances.name)
        // A place that the client may not see has no members, whatever it asks.
        if let query = try query(parameters) {
            if case .hidden = selection {} else { read.selection = .query(SelectionQuery(query), of: selection) }
        }
        read.explains = try explains(parameters)
        if isKeyed { return .read(try keyed(read, routed, parameters)) }
        if let format = streamFormat(request, offersLines: false) {
            return .stream(try stream(read, format, request, parameters))
        }
        (read.until, read.debounce) = (try until(parameters).map { AwaitedValue(value: $0) }, try debounce(parameters))
        read.untilExists = try parameters.flag("until-exists")
        guard read.wait != nil || (read.until == nil && read.debounce == nil && !read.untilExists) else {
            throw .badParameter("until, until-exists and debounce go with wait")
        }
        read.known = known
        let latest = routed.circumstances.latest
        if parameters.has("version") {
            read.version = try parameters.wholeNumber("version", in: 0...Version.max, "a whole number, 0 or more")
        }
        if let text = try parameters.text("at-least") {
            let cursor = try cursor(text, "at-least")
            guard cursor.epoch == latest.epoch else { throw lost(.lost, routed.circumstances.bounds, store) }
            read.atLeast = cursor.version
            if cursor.version > latest.version, read.wait == nil {
                throw Self.aheadOfLatest(latest, hint: "; add wait to wait for it")
            }
        }
        if let version = read.version {
            guard !parameters.has("wait"), read.atLeast == nil, read.until == nil, !read.untilExists else {
                throw .badParameter("version cannot be combined with wait, until or at-least: the past never changes")
            }
            guard version <= latest.version else { throw Self.aheadOfLatest(latest) }
            // A preference may be ignored: the past never changes.
            read.wait = nil
        }
        return .read(read)
    }

    private static let parametersOfQueries = [
        "filter", "sort", "limit", "offset", "after", "fields", "count", "explain",
    ]

    /// Whether the query says what it takes, which differs each time.
    private func explains(_ parameters: Parameters) throws(Problem) -> Bool {
        guard try parameters.flag("explain") else { return false }
        guard !parameters.has("wait"), !parameters.has("as") else {
            throw .badParameter("explain cannot be combined with wait or as=keyed")
        }
        return true
    }

    private func keyed(
        _ read: ReadRequest, _ routed: RoutedRequest, _ parameters: Parameters
    ) throws(Problem) -> ReadRequest {
        try Self.refuseForKeyed(parameters)
        var read = read
        let since = try parameters.text("since").map { text throws(Problem) in try cursor(text, "since") }
        let before = since.flatMap { keyedAnswers.answer(to: read.selection, at: $0) }
        read.keyed = KeyedQuery(since: since, before: before)
        // Without an answer that the client has, there is nothing to wait for: it gets all keys.
        if before == nil { read.wait = nil }
        (read.known, read.debounce) = (before.map { .tags([$0.tag]) }, try debounce(parameters))
        return read
    }

    private static func refuseForKeyed(_ parameters: Parameters) throws(Problem) {
        for name in ["version", "at-least", "until", "until-exists"] where parameters.has(name) {
            throw .badParameter("as=keyed takes since, wait and debounce, not \(name)")
        }
    }

    private func query(_ parameters: Parameters) throws(Problem) -> MemberQuery? {
        guard Self.parametersOfQueries.contains(where: parameters.has) else { return nil }
        func number(_ name: String, most: Int) throws(Problem) -> Int? {
            try parameters.wholeNumber(name, in: 0...most, "a whole number from 0 to \(most)")
        }
        let limit = try number("limit", most: limits.queryLimitMax) ?? min(100, limits.queryLimitMax)
        let offset = try number("offset", most: Int(Int32.max)) ?? 0
        let (filter, sort) = (try parameters.text("filter"), try parameters.text("sort"))
        let (fields, wantsCount) = (try parameters.text("fields"), try parameters.flag("count"))
        let (after, explains) = (try parameters.text("after"), try explains(parameters))
        do throws(MemberQuery.Fault) {
            return try MemberQuery(
                filter: filter, sort: sort, window: offset..<(offset + limit), fields: fields, wantsCount: wantsCount,
                after: after, explains: explains)
        } catch {
            throw .invalid(error)
        }
    }

    func knownTags(_ request: Request) throws(Problem) -> TagSet? {
        guard let value = request[.ifNoneMatch] else { return nil }
        switch EntityTagCondition(value) {
        case .any?: return .any
        case .tags(let tags)?: return .tags(tags.map { ContentCoding.plainTag($0.opaque) })
        case nil:
            throw Problem(.badRequest, "bad-entity-tag", "If-None-Match must be * or a list of tags in double quotes")
        }
    }

    /// The tags of compressed answers in `If-None-Match`, with what the coding has added.
    func knownCompressedTags(_ request: Request) -> Set<String> {
        guard let value = request[.ifNoneMatch], case .tags(let tags)? = EntityTagCondition(value) else { return [] }
        return Set(tags.map(\.opaque).filter { $0 != ContentCoding.plainTag($0) })
    }

    func isKeyed(_ parameters: Parameters) throws(Problem) -> Bool {
        guard parameters.has("as") else { return false }
        return try parameters.choice("as", of: ["keyed"]) != nil
    }

    private func difference(
        at pointer: JSONPointer, _ routed: RoutedRequest, _ parameters: Parameters
    ) throws(Problem) -> ChangesRequest {
        try Self.refuseForKeyed(parameters)
        let since = try parameters.text("since")
        let wait = try wait(parameters, routed.request)
        return ChangesRequest(
            since: try since.map { text throws(Problem) in .cursor(try cursor(text, "since")) } ?? .never,
            limit: .max, filter: routed.store.filter(path: pointer, types: [], by: nil), store: routed.store,
            form: .difference(pointer), wait: since == nil ? nil : wait, debounce: try debounce(parameters),
            style: try parameters.style(), coding: coding(of: routed.request),
            name: routed.circumstances.name)
    }

    // MARK: Commits

    func changes(_ routed: RoutedRequest) throws(Problem) -> Plan {
        let (request, store) = (routed.request, routed.store)
        if let options = try onlyReads(request) { return .respond(options) }
        let known: Set<ExactText> = [
            "since", "before", "wait", "debounce", "limit", "path", "types", "by", "on-lost", "as", "pretty",
        ]
        let parameters = try Parameters(routed.target, known: known)
        if let before = try parameters.text("before") { return try earlier(before, parameters, routed) }
        let format = streamFormat(request)
        // An EventSource that comes back repeats its URL with the first `since`; `Last-Event-ID` is newer.
        let lastID = format == .events ? Self.lastEventID(request) : nil
        guard let since = try parameters.text("since") ?? lastID else {
            throw Problem(
                .badRequest, "since-required",
                "since is required: a cursor such as \(routed.circumstances.latest), oldest, or now; or before, for the newest commits first"
            )
        }
        var follow = ChangesRequest(
            since: lastID != nil
                ? .now : since == "oldest" ? .oldest : since == "now" ? .now : .cursor(try cursor(since, "since")),
            limit: limits.changesLimitDefault, filter: ChangesFilter(), store: store,
            form: try isKeyed(parameters) ? .keyed : .patches, wait: try wait(parameters, request),
            debounce: try debounce(parameters), style: try parameters.style(), coding: coding(of: request),
            name: routed.circumstances.name)
        if let limit = try limit(parameters) {
            guard format == nil else { throw .badParameter("a stream takes no limit") }
            follow.limit = limit
        }
        follow.filter = try filter(parameters, store)
        if let format { return .stream(stream(follow, format, lastID)) }
        if try parameters.choice("on-lost", of: ["snapshot"]) != nil { follow.onLost = .snapshot }
        return .changes(follow)
    }

    private func earlier(_ before: String, _ parameters: Parameters, _ routed: RoutedRequest) throws(Problem) -> Plan {
        for name in ["since", "wait", "debounce", "on-lost", "as"] where try parameters.text(name) != nil {
            throw .badParameter("\(name) does not go with before")
        }
        guard streamFormat(routed.request) == nil else {
            throw .badParameter("a stream goes forward, so it does not take before")
        }
        let request = ChangesRequest(
            since: .now, limit: try limit(parameters) ?? limits.changesLimitDefault,
            filter: try filter(parameters, routed.store), store: routed.store, style: try parameters.style(),
            coding: coding(of: routed.request), name: routed.circumstances.name)
        return .earlier(request, before: before == "now" ? nil : try cursor(before, "before"))
    }

    func limit(_ parameters: Parameters) throws(Problem) -> Int? {
        try parameters.wholeNumber("limit", in: 1...Int.max, "a whole number above 0").map {
            min($0, limits.changesLimitMax)
        }
    }

    func filter(_ parameters: Parameters, _ store: VisibleStore) throws(Problem) -> ChangesFilter {
        var path: JSONPointer?
        if let text = try parameters.text("path") {
            guard let pointer = JSONPointer(text: text) else {
                throw .badParameter("path: \(JSONPointer.expectation(of: text))")
            }
            path = store.outer(pointer)
        }
        var types: Set<ExactText> = []
        if let text = try parameters.text("types") {
            let named = text.split(separator: ",").map(String.init)
            guard !named.isEmpty else { throw .badParameter("types must name at least one action type") }
            for name in Set(named.map { ExactText($0) }).map(\.text).sorted() {
                let found = store.typesSeen(by: name)
                guard !found.isEmpty else { throw unknownType(name, at: nil, store) }
                types.formUnion(found.map { ExactText($0) })
            }
        }
        // Sorted: clients that name the same types wait together.
        return store.filter(path: path, types: types.map(\.text).sorted(), by: try parameters.text("by"))
    }
}
