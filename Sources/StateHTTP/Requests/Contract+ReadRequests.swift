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
        if let options = try onlyReads(
            request, hint: "an action changes the state: POST \(store.path)/actions")
        {
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
            throw Problem(
                .badRequest, "bad-parameter", "since goes with as=keyed; without it, If-None-Match says what is known")
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
        if let format = streamFormat(request, offered: [.events]) {
            return .stream(try stream(read, format, request, parameters))
        }
        (read.until, read.debounce) = (try until(parameters).map { AwaitedValue(value: $0) }, try debounce(parameters))
        read.untilExists = try parameters.flag("until-exists")
        guard read.wait != nil || (read.until == nil && read.debounce == nil && !read.untilExists) else {
            throw Problem(.badRequest, "bad-parameter", "until, until-exists and debounce go with wait")
        }
        read.known = known
        let latest = routed.circumstances.latest
        let version = try parameters.text("version").map { text throws(Problem) -> Version in
            guard let version: Version = Parameters.wholeNumber(text) else {
                throw Problem(.badRequest, "bad-parameter", "version must be a whole number, 0 or more")
            }
            return version
        }
        if let text = try parameters.text("at-least") {
            let cursor = try cursor(text, "at-least")
            guard cursor.epoch == latest.epoch else { throw lost("cursor-lost", routed.circumstances.bounds, store) }
            read.atLeast = cursor.version
            if cursor.version > latest.version, read.wait == nil {
                throw Self.aheadOfLatest(latest, hint: "; add wait to wait for it")
            }
        }
        if let version {
            guard !parameters.has("wait"), read.atLeast == nil, read.until == nil, !read.untilExists else {
                throw Problem(
                    .badRequest, "bad-parameter",
                    "version cannot be combined with wait, until or at-least: the past never changes")
            }
            guard version <= latest.version else { throw Self.aheadOfLatest(latest) }
            // A preference may be ignored: the past never changes.
            read.wait = nil
            read.version = version
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
            throw Problem(.badRequest, "bad-parameter", "explain cannot be combined with wait or as=keyed")
        }
        return true
    }

    private func keyed(
        _ read: ReadRequest, _ routed: RoutedRequest, _ parameters: Parameters
    ) throws(Problem) -> ReadRequest {
        try Self.refuseForKeyed(parameters, ["version", "at-least", "until", "until-exists"])
        var read = read
        let since = try parameters.text("since").map { text throws(Problem) in try cursor(text, "since") }
        let before = since.flatMap { keyedAnswers.answer(to: read.selection, at: $0) }
        read.keyed = KeyedQuery(since: since, before: before, answers: keyedAnswers)
        // Without an answer that the client has, there is nothing to wait for: it gets all keys.
        if before == nil { read.wait = nil }
        (read.known, read.debounce) = (before.map { .tags([$0.tag]) }, try debounce(parameters))
        return read
    }

    private static func refuseForKeyed(_ parameters: Parameters, _ names: [String]) throws(Problem) {
        for name in names where parameters.has(name) {
            throw Problem(.badRequest, "bad-parameter", "as=keyed takes since, wait and debounce, not \(name)")
        }
    }

    private func query(_ parameters: Parameters) throws(Problem) -> MemberQuery? {
        guard Self.parametersOfQueries.contains(where: parameters.has) else { return nil }
        func number(_ name: String, _ standard: Int, _ most: Int) throws(Problem) -> Int {
            guard let text = try parameters.text(name) else { return standard }
            guard let number: Int = Parameters.wholeNumber(text), number <= most else {
                throw Problem(.badRequest, "bad-parameter", "\(name) must be a whole number from 0 to \(most)")
            }
            return number
        }
        let limit = try number("limit", min(100, limits.queryLimitMax), limits.queryLimitMax)
        let offset = try number("offset", 0, Int(Int32.max))
        let (filter, sort) = (try parameters.text("filter"), try parameters.text("sort"))
        let (fields, wantsCount) = (try parameters.text("fields"), try parameters.flag("count"))
        let (after, explains) = (try parameters.text("after"), try explains(parameters))
        do throws(MemberQuery.Fault) {
            return try MemberQuery(
                filter: filter, sort: sort, window: offset..<(offset + limit), fields: fields, wantsCount: wantsCount,
                after: after, explains: explains)
        } catch {
            throw Problem.invalid(error.parameter, at: error.offset, error.detail)
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
        guard let value = request[.ifNoneMatch], case .tags(let tags)? = EntityTagCondition(value) else {
            return []
        }
        return Set(tags.map(\.opaque).filter { $0 != ContentCoding.plainTag($0) })
    }

    func isKeyed(_ parameters: Parameters) throws(Problem) -> Bool {
        switch try parameters.text("as") {
        case nil: return false
        case "keyed"?: return true
        case _?: throw Problem(.badRequest, "bad-parameter", "as can only be keyed")
        }
    }

    private func difference(
        at pointer: JSONPointer, _ routed: RoutedRequest, _ parameters: Parameters
    ) throws(Problem) -> ChangesRequest {
        try Self.refuseForKeyed(parameters, ["version", "at-least", "until", "until-exists"])
        let since = try parameters.text("since")
        let wait = try wait(parameters, routed.request)
        return ChangesRequest(
            since: try since.map { text throws(Problem) in .cursor(try cursor(text, "since")) } ?? .never,
            limit: .max, filter: routed.store.filter(path: pointer, types: [], by: nil), store: routed.store,
            form: .difference(pointer),
            wait: since == nil ? nil : wait, debounce: try debounce(parameters),
            onLost: .problem, style: try parameters.style(), coding: coding(of: routed.request),
            requestID: routed.circumstances.requestID)
    }
}
