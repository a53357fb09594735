package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

/// The limits that clients meet.
package struct ContractLimits: Sendable {
    package var bodyBytesMax = 8 << 20
    package var depthMax = 64
    package var waitDefault = Duration.seconds(25)
    package var waitMax = Duration.seconds(55)
    package var changesLimitDefault = 100
    package var changesLimitMax = 1000
    package var batchActionsMax = 10_000
    package var bulkLinesMax = 200_000
    /// Each is looked up inside the store's turn.
    package var expectationsMax = 1000
    package var idempotencyLifetime = Duration.seconds(86_400)
    package var settleMax = Duration.seconds(10)

    /// The limits that the shipped configuration has.
    package init() {}
}

/// The HTTP interface: which request means what, and how every outcome is said.
///
/// Pure: it reads values and makes values. What has to be done in between is the rim's.
package struct Contract: Sendable {
    let catalogue: Catalogue
    let limits: ContractLimits
    /// The derived stores by name.
    private let stores: [String: Scope]
    /// The catalogue and the description of the interface, of each store by its name, never change while the process runs.
    private let documents: [String: (catalogue: [UInt8], openAPI: [UInt8])]

    /// Prepares the interface for a domain's actions and views.
    package init(catalogue: Catalogue, limits: ContractLimits = ContractLimits()) {
        self.catalogue = catalogue
        self.limits = limits
        stores = Dictionary(uniqueKeysWithValues: catalogue.stores.map { ($0.name, $0) })
        documents = Dictionary(
            uniqueKeysWithValues: ([catalogue.whole] + catalogue.stores).map { scope in
                let schemas = ActionSchemas(scope)
                return (scope.name, (schemas.catalogue, schemas.openAPI))
            })
    }

    /// Reads a request.
    ///
    /// - Parameter position: the present head and the oldest position that can be followed from.
    package func answer(_ request: Request, position: HeadPosition, requestID: String) -> Answer {
        do throws(Problem) {
            if let manner = request.notes?.left(DispatchManner.self) { return try dispatch(request.body, manner) }
            let answer = try route(request, position: position, requestID: requestID)
            guard case .respond(var response) = answer else { return answer }
            response.fields[.stateCursor] = position.head.description
            return .respond(response)
        } catch {
            return .respond(response(to: error, head: position.head, requestID: requestID))
        }
    }

    private func route(_ request: Request, position: HeadPosition, requestID: String) throws(Problem) -> Answer {
        let target: RequestTarget
        do throws(RequestTarget.Fault) {
            target = try RequestTarget(request.target)
        } catch {
            throw Problem(.badRequest, "bad-target", error.detail)
        }
        let path = target.segments
        switch (path.first, path.dropFirst().first) {
        case ("livez", nil): return try operations(.live, request, target)
        case ("readyz", nil): return try operations(.ready, request, target)
        case ("metrics", nil): return try operations(.metrics, request, target)
        case ("v1", "stores") where path.count > 2 && path[2] != "":
            guard let scope = stores[path[2]] else {
                throw Problem(
                    .notFound, "no-such-store",
                    "there is no derived store of this name; there are \(stores.keys.sorted().joined(separator: ", "))")
            }
            return try route(request, target, path.dropFirst(3), scope, position, requestID)
        case ("v1", "stores"): return try fixed(request, target) { list(stores.keys.sorted(), of: "stores", in: "/v1") }
        case ("v1", _): return try route(request, target, path.dropFirst(), catalogue.whole, position, requestID)
        default: throw Self.nowhere
        }
    }

    /// Reads a request to a store, the whole or a derived one; `path` is what comes after the store's own.
    private func route(
        _ request: Request, _ target: RequestTarget, _ path: ArraySlice<String>, _ scope: Scope,
        _ position: HeadPosition, _ requestID: String
    ) throws(Problem) -> Answer {
        switch path.first {
        case nil: return try fixed(request, target) { identity(position, scope) }
        case "" where path.count == 1: return try fixed(request, target) { identity(position, scope) }
        case "state":
            let pointer = scope.outer(JSONPointer(try tokens(path.dropFirst())))
            return try read(.pointer(pointer), scope, request, target, position, requestID)
        case "views": return try views(request, target, Array(path.dropFirst()), scope, position, requestID)
        case "actions": return try actions(request, target, Array(path.dropFirst()), scope)
        case "changes" where path.count == 1: return try follow(request, target, scope, position, requestID)
        case "openapi.json" where path.count == 1:
            return try fixed(request, target) { documents[scope.name]?.openAPI ?? [] }
        default: throw Self.nowhere
        }
    }

    private static var nowhere: Problem {
        Problem(
            .notFound, "no-such-route",
            "there is nothing at this path; GET /v1 tells where state, actions and changes are")
    }

    /// A document that lists what has a name, and where each is.
    private func list(_ names: [String], of kind: String, in root: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.byte(UInt8(ascii: "{"))
        writer.string(kind)
        writer.byte(UInt8(ascii: ":"))
        writer.array(names) { name, writer in
            var isFirst = true
            writer.byte(UInt8(ascii: "{"))
            writer.member("name", name, &isFirst)
            writer.member("href", "\(root)/\(kind)/\(name)", &isFirst)
            writer.byte(UInt8(ascii: "}"))
        }
        writer.byte(UInt8(ascii: "}"))
        return writer.bytes
    }

    private func tokens(_ segments: ArraySlice<String>) throws(Problem) -> [String] {
        // `/v1/state/` is a state with an empty key; nobody means that by a slash at the end.
        let segments = segments.count == 1 && segments.first == "" ? [] : segments
        var tokens: [String] = []
        for segment in segments {
            guard let token = JSONPointer.unescape(Substring(segment)) else {
                throw Problem(
                    .badRequest, "bad-pointer", "a ~ in a JSON Pointer must be followed by 0 (for ~) or 1 (for /)")
            }
            tokens.append(token)
        }
        return tokens
    }

    private func operations(_ answer: Answer, _ request: Request, _ target: RequestTarget) throws(Problem) -> Answer {
        if let options = try onlyReads(request) { return .respond(options) }
        _ = try Parameters(target, known: [])
        return answer
    }

    /// A document that needs nothing but itself.
    private func fixed(
        _ request: Request, _ target: RequestTarget, _ body: () -> [UInt8]
    ) throws(Problem) -> Answer {
        if let options = try onlyReads(request) { return .respond(options) }
        let parameters = try Parameters(target, known: ["pretty"])
        return .respond(.json(.ok, body(), style: try parameters.style()))
    }

    private func views(
        _ request: Request, _ target: RequestTarget, _ path: [String], _ scope: Scope, _ position: HeadPosition,
        _ requestID: String
    ) throws(Problem) -> Answer {
        let names = scope.views.keys.sorted()
        if path.isEmpty { return try fixed(request, target) { list(names, of: "views", in: scope.path) } }
        guard path.count == 1, let name = scope.views[path[0]] else {
            throw Problem(
                .notFound, "no-such-view",
                names.isEmpty
                    ? "this store has no views"
                    : "there is no such view; there are \(names.joined(separator: ", "))")
        }
        return try read(.view(name), scope, request, target, position, requestID)
    }

    private func actions(
        _ request: Request, _ target: RequestTarget, _ path: [String], _ scope: Scope
    ) throws(Problem) -> Answer {
        if path.isEmpty {
            switch request.method {
            case .post:
                let manner = try manner(request, target, scope)
                request.notes?.leave(manner)
                return try dispatch(request.body, manner)
            case .get, .head: return try fixed(request, target) { documents[scope.name]?.catalogue ?? [] }
            default: return .respond(try Self.refuseMethod(request, allowed: "GET, HEAD, POST, OPTIONS"))
            }
        }
        if let options = try onlyReads(request) { return .respond(options) }
        let parameters = try Parameters(target, known: ["pretty"])
        // An ID of the client's own may hold a slash.
        return .outcome(id: path.joined(separator: "/"), scope, try parameters.style())
    }

    private static let parametersOfViews: Set = ["wait", "until", "settle", "at-least", "version", "pretty"]
    private static let parametersOfState = parametersOfViews.union(["as", "since"])

    private func read(
        _ selection: Selection, _ scope: Scope, _ request: Request, _ target: RequestTarget, _ position: HeadPosition,
        _ requestID: String
    ) throws(Problem) -> Answer {
        if let options = try onlyReads(request) { return .respond(options) }
        let parameters: Parameters
        switch selection {
        case .pointer: parameters = try Parameters(target, known: Self.parametersOfState)
        case .view: parameters = try Parameters(target, known: Self.parametersOfViews)
        }
        if case .pointer(let pointer) = selection, try isKeyed(parameters) {
            return .follow(try difference(at: pointer, scope, request, parameters, requestID))
        }
        guard !parameters.has("since") else {
            throw Problem(
                .badRequest, "bad-parameter", "since goes with as=keyed; without it, If-None-Match says what is known")
        }
        var read = ReadRequest(
            selection: selection, scope: scope, wait: try wait(parameters, request), style: try parameters.style(),
            requestID: requestID)
        if let format = streamFormat(request, offered: [.events]) {
            return .stream(try stream(read, format, request, parameters))
        }
        (read.until, read.settle) = (try until(parameters), try settle(parameters))
        guard read.wait != nil || (read.until == nil && read.settle == nil) else {
            throw Problem(.badRequest, "bad-parameter", "until and settle go with wait")
        }
        if let value = request.fields[.ifNoneMatch] {
            switch EntityTagCondition(value) {
            case .any?: read.known = .any
            case .tags(let tags)?: read.known = .tags(tags.map(\.opaque))
            case nil:
                throw Problem(
                    .badRequest, "bad-entity-tag", "If-None-Match must be * or a list of tags in double quotes")
            }
        }
        if let text = try parameters.text("at-least") {
            let cursor = try cursor(text, "at-least")
            guard cursor.epoch == position.head.epoch else { throw lost("cursor-lost", position, scope) }
            read.atLeast = cursor.version
            if cursor.version > position.head.version, read.wait == nil {
                throw Self.aheadOfHead(position.head, hint: "; add wait to wait for it")
            }
        }
        if let text = try parameters.text("version") {
            guard let version = Version(text) else {
                throw Problem(.badRequest, "bad-parameter", "version must be a whole number")
            }
            guard !parameters.has("wait"), read.atLeast == nil, read.until == nil else {
                throw Problem(
                    .badRequest, "bad-parameter",
                    "version takes no wait, no until and no at-least: the past never changes")
            }
            guard version <= position.head.version else { throw Self.aheadOfHead(position.head) }
            // A wait that is only preferred may be left out.
            read.wait = nil
            read.version = version
        }
        return .read(read)
    }

    /// Whether differences are asked for as lists of IDs.
    private func isKeyed(_ parameters: Parameters) throws(Problem) -> Bool {
        switch try parameters.text("as") {
        case nil: return false
        case "keyed"?: return true
        case _?: throw Problem(.badRequest, "bad-parameter", "as can only be keyed")
        }
    }

    /// A GET of what has become of the entities in a place since the client looked.
    private func difference(
        at pointer: JSONPointer, _ scope: Scope, _ request: Request, _ parameters: Parameters, _ requestID: String
    ) throws(Problem) -> FollowRequest {
        for name in ["version", "at-least", "until"] where parameters.has(name) {
            throw Problem(.badRequest, "bad-parameter", "as=keyed takes since, wait and settle, no \(name)")
        }
        let since = try parameters.text("since")
        return FollowRequest(
            since: try since.map { text throws(Problem) in .cursor(try cursor(text, "since")) } ?? .never,
            limit: .max, filter: ChangesFilter(path: pointer), scope: scope, form: .difference(pointer),
            wait: since == nil ? nil : try wait(parameters, request), settle: try settle(parameters), onLost: .problem,
            style: try parameters.style(),
            requestID: requestID)
    }

    private func follow(
        _ request: Request, _ target: RequestTarget, _ scope: Scope, _ position: HeadPosition, _ requestID: String
    ) throws(Problem) -> Answer {
        if let options = try onlyReads(request) { return .respond(options) }
        let known: Set = ["since", "wait", "settle", "limit", "path", "types", "on-lost", "as", "pretty"]
        let parameters = try Parameters(target, known: known)
        let format = streamFormat(request, offered: [.events, .lines])
        // What an EventSource says of itself when it comes back beats what its address said at first.
        let lastID = format == .events ? Self.lastEventID(request) : nil
        guard let since = try parameters.text("since") ?? lastID else {
            throw Problem(
                .badRequest, "since-required",
                "since is required: a cursor such as \(position.head), oldest, or now")
        }
        var follow = FollowRequest(
            since: lastID != nil
                ? .now : since == "oldest" ? .oldest : since == "now" ? .now : .cursor(try cursor(since, "since")),
            limit: limits.changesLimitDefault, filter: ChangesFilter(), scope: scope,
            form: try isKeyed(parameters) ? .keyed : .patches, wait: try wait(parameters, request),
            settle: try settle(parameters), onLost: .problem, style: try parameters.style(), requestID: requestID)
        if let text = try parameters.text("limit") {
            // However many digits: what is above the most is cut.
            let digits = !text.isEmpty && text.allSatisfy { $0.isASCII && $0.isNumber }
            guard let limit = digits ? Int(text) ?? .max : nil, limit > 0 else {
                throw Problem(.badRequest, "bad-parameter", "limit must be a whole number above 0")
            }
            follow.limit = min(limit, limits.changesLimitMax)
        }
        if let text = try parameters.text("path") {
            guard let pointer = JSONPointer(text: text) else {
                throw Problem(.badRequest, "bad-parameter", "path must be a JSON Pointer, empty or beginning with /")
            }
            follow.filter.path = scope.outer(pointer)
        }
        if let text = try parameters.text("types") {
            let types = text.split(separator: ",").map(String.init)
            guard !types.isEmpty else {
                throw Problem(.badRequest, "bad-parameter", "types must name at least one action type")
            }
            for type in types {
                let isOwn = scope.isWhole && Commit.isOfTheStore(type)
                guard scope.actions[type] != nil || isOwn else { throw unknownType(type, at: nil, scope) }
                follow.filter.types.append(type)
            }
        }
        follow.filter.within = scope.filter
        if let format { return .stream(stream(follow, format, lastID)) }
        switch try parameters.text("on-lost") {
        case "snapshot"?: follow.onLost = .snapshot
        case nil: break
        default: throw Problem(.badRequest, "bad-parameter", "on-lost can only be snapshot")
        }
        return .follow(follow)
    }

    func cursor(_ text: String, _ name: String) throws(Problem) -> Cursor {
        guard let cursor = Cursor(text: text) else {
            throw Problem(
                .badRequest, "bad-cursor",
                "\(name) must be a cursor as an answer's State-Cursor or next has it: <epoch>.<version>")
        }
        return cursor
    }

    /// Lets GET and HEAD through and answers OPTIONS.
    private func onlyReads(_ request: Request) throws(Problem) -> Response? {
        switch request.method {
        case .get, .head: nil
        default: try Self.refuseMethod(request, allowed: "GET, HEAD, OPTIONS")
        }
    }

    static func refuseMethod(_ request: Request, allowed: String) throws(Problem) -> Response {
        if request.method == .options { return Response(status: .noContent, fields: [.allow: allowed]) }
        throw Problem(
            .methodNotAllowed, "method-not-allowed", "\(request.method.rawValue) cannot be used here; \(allowed) can",
            fields: [.allow: allowed])
    }
}

/// Where the history stands when a request is read.
package struct HeadPosition: Sendable {
    package var head: Cursor
    /// The oldest version that can be followed from.
    package var oldest: Version

    /// Makes a position.
    package init(head: Cursor, oldest: Version) {
        self.head = head
        self.oldest = oldest
    }
}
