internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

extension Contract {
    func changes(_ routed: RoutedRequest) throws(Problem) -> Plan {
        let (request, store) = (routed.request, routed.store)
        if let options = try onlyReads(request) { return .respond(options) }
        let known: Set<ExactText> = [
            "since", "before", "wait", "debounce", "limit", "path", "types", "by", "on-lost", "as", "pretty",
        ]
        let parameters = try Parameters(routed.target, known: known)
        if let before = try parameters.text("before") { return try earlier(before, parameters, routed) }
        let format = streamFormat(request, offered: [.events, .lines])
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
            debounce: try debounce(parameters), onLost: .problem, style: try parameters.style(),
            coding: coding(of: request), requestID: routed.circumstances.requestID)
        if let limit = try limit(parameters) {
            guard format == nil else { throw Problem(.badRequest, "bad-parameter", "a stream takes no limit") }
            follow.limit = limit
        }
        follow.filter = try filter(parameters, store)
        if let format { return .stream(stream(follow, format, lastID)) }
        switch try parameters.text("on-lost") {
        case "snapshot"?: follow.onLost = .snapshot
        case nil: break
        default: throw Problem(.badRequest, "bad-parameter", "on-lost can only be snapshot")
        }
        return .changes(follow)
    }

    private func earlier(
        _ before: String, _ parameters: Parameters, _ routed: RoutedRequest
    ) throws(Problem) -> Plan {
        for name in ["since", "wait", "debounce", "on-lost", "as"] where try parameters.text(name) != nil {
            throw Problem(.badRequest, "bad-parameter", "\(name) does not go with before")
        }
        guard streamFormat(routed.request, offered: [.events, .lines]) == nil else {
            throw Problem(.badRequest, "bad-parameter", "a stream goes forward, so it does not take before")
        }
        let request = ChangesRequest(
            since: .now, limit: try limit(parameters) ?? limits.changesLimitDefault,
            filter: try filter(parameters, routed.store), store: routed.store, form: .patches, onLost: .problem,
            style: try parameters.style(), coding: coding(of: routed.request),
            requestID: routed.circumstances.requestID)
        return .earlier(request, before: before == "now" ? nil : try cursor(before, "before"))
    }

    func limit(_ parameters: Parameters) throws(Problem) -> Int? {
        guard let text = try parameters.text("limit") else { return nil }
        guard let limit: Int = Parameters.wholeNumber(text), limit > 0 else {
            throw Problem(.badRequest, "bad-parameter", "limit must be a whole number above 0")
        }
        return min(limit, limits.changesLimitMax)
    }

    func filter(_ parameters: Parameters, _ store: VisibleStore) throws(Problem) -> ChangesFilter {
        var path: JSONPointer?
        if let text = try parameters.text("path") {
            guard let pointer = JSONPointer(text: text) else {
                throw Problem(.badRequest, "bad-parameter", "path: \(JSONPointer.expectation(of: text))")
            }
            path = store.outer(pointer)
        }
        var types: Set<ExactText> = []
        if let text = try parameters.text("types") {
            let named = text.split(separator: ",").map(String.init)
            guard !named.isEmpty else {
                throw Problem(.badRequest, "bad-parameter", "types must name at least one action type")
            }
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
