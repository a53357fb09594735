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

    /// The limits that the shipped configuration has.
    package init() {}
}

/// The HTTP interface: which request means what, and how every outcome is said.
///
/// Pure: it reads values and makes values. What has to be done in between is the rim's.
package struct Contract: Sendable {
    let catalogue: Catalogue
    let limits: ContractLimits
    /// The catalogue and the description of the interface never change while the process runs.
    private let catalogueBody: [UInt8]
    private let openAPIBody: [UInt8]

    /// Prepares the interface for a domain's actions and views.
    package init(catalogue: Catalogue, limits: ContractLimits = ContractLimits()) {
        self.catalogue = catalogue
        self.limits = limits
        let schemas = ActionSchemas(catalogue)
        catalogueBody = schemas.catalogue
        openAPIBody = schemas.openAPI
    }

    /// Reads a request.
    ///
    /// - Parameter position: the present head and the oldest position that can be followed from.
    package func answer(_ request: Request, position: HeadPosition, requestID: String) -> Answer {
        do throws(Problem) {
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
        case ("v1", nil): return try fixed(request, target) { identity(position) }
        case ("v1", "") where path.count == 2: return try fixed(request, target) { identity(position) }
        case ("v1", "state"):
            let selection = Selection.pointer(JSONPointer(try tokens(path.dropFirst(2))))
            return try read(selection, request, target, position, requestID)
        case ("v1", "views"): return try views(request, target, path, position, requestID)
        case ("v1", "actions"): return try actions(request, target, path)
        case ("v1", "changes") where path.count == 2:
            return try follow(request, target, position, requestID)
        case ("v1", "openapi.json") where path.count == 2: return try fixed(request, target) { openAPIBody }
        default:
            throw Problem(
                .notFound, "no-such-route",
                "there is nothing at this path; GET /v1 tells where state, actions and changes are")
        }
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
        _ request: Request, _ target: RequestTarget, _ path: [String], _ position: HeadPosition, _ requestID: String
    ) throws(Problem) -> Answer {
        if path.count == 2 {
            return try fixed(request, target) {
                var writer = JSONWriter()
                writer.raw("{\"views\":[")
                var isFirst = true
                for name in catalogue.views.keys.sorted() {
                    writer.separator(&isFirst)
                    writer.raw("{\"name\":")
                    writer.string(name)
                    writer.raw(",\"href\":")
                    writer.string("/v1/views/\(name)")
                    writer.byte(UInt8(ascii: "}"))
                }
                writer.raw("]}")
                return writer.bytes
            }
        }
        guard path.count == 3, catalogue.views[path[2]] != nil else {
            let names = catalogue.views.keys.sorted().joined(separator: ", ")
            throw Problem(
                .notFound, "no-such-view",
                names.isEmpty ? "this store has no views" : "there is no such view; there are \(names)")
        }
        return try read(.view(path[2]), request, target, position, requestID)
    }

    private func actions(_ request: Request, _ target: RequestTarget, _ path: [String]) throws(Problem) -> Answer {
        if path.count == 2 {
            switch request.method {
            case .post: return try dispatch(request, target)
            case .get, .head: return try fixed(request, target) { catalogueBody }
            default: return .respond(try Self.refuseMethod(request, allowed: "GET, HEAD, POST, OPTIONS"))
            }
        }
        if let options = try onlyReads(request) { return .respond(options) }
        let parameters = try Parameters(target, known: ["pretty"])
        // An ID of the client's own may hold a slash.
        return .outcome(id: path.dropFirst(2).joined(separator: "/"), try parameters.style())
    }

    private func read(
        _ selection: Selection, _ request: Request, _ target: RequestTarget, _ position: HeadPosition,
        _ requestID: String
    ) throws(Problem) -> Answer {
        if let options = try onlyReads(request) { return .respond(options) }
        let parameters = try Parameters(target, known: ["wait", "at-least", "version", "pretty"])
        var read = ReadRequest(
            selection: selection, wait: try wait(parameters, request), style: try parameters.style(),
            requestID: requestID)
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
            guard cursor.epoch == position.head.epoch else { throw lost("cursor-lost", position) }
            read.atLeast = cursor.version
            if cursor.version > position.head.version, read.wait == nil {
                throw Self.aheadOfHead(position.head, hint: "; add wait to wait for it")
            }
        }
        if let text = try parameters.text("version") {
            guard let version = Version(text) else {
                throw Problem(.badRequest, "bad-parameter", "version must be a whole number")
            }
            guard !parameters.has("wait"), read.atLeast == nil else {
                throw Problem(
                    .badRequest, "bad-parameter", "version takes no wait and no at-least: the past never changes")
            }
            guard version <= position.head.version else { throw Self.aheadOfHead(position.head) }
            // A wait that is only preferred may be left out.
            read.wait = nil
            read.version = version
        }
        return .read(read)
    }

    private func follow(
        _ request: Request, _ target: RequestTarget, _ position: HeadPosition, _ requestID: String
    ) throws(Problem) -> Answer {
        if let options = try onlyReads(request) { return .respond(options) }
        let known: Set = ["since", "wait", "limit", "path", "types", "on-lost", "pretty"]
        let parameters = try Parameters(target, known: known)
        guard let since = try parameters.text("since") else {
            throw Problem(
                .badRequest, "since-required",
                "since is required: a cursor such as \(position.head), oldest, or now")
        }
        var follow = FollowRequest(
            since: since == "oldest" ? .oldest : since == "now" ? .now : .cursor(try cursor(since, "since")),
            limit: limits.changesLimitDefault, filter: ChangesFilter(), wait: try wait(parameters, request),
            onLost: .problem, style: try parameters.style(), requestID: requestID)
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
            follow.filter.path = pointer
        }
        if let text = try parameters.text("types") {
            let types = text.split(separator: ",").map(String.init)
            guard !types.isEmpty else {
                throw Problem(.badRequest, "bad-parameter", "types must name at least one action type")
            }
            for type in types {
                guard catalogue.actions[type] != nil else { throw unknownType(type, at: nil) }
                follow.filter.types.append(type)
            }
        }
        switch try parameters.text("on-lost") {
        case "snapshot"?: follow.onLost = .snapshot
        case nil: break
        default: throw Problem(.badRequest, "bad-parameter", "on-lost can only be snapshot")
        }
        return .follow(follow)
    }

    private func cursor(_ text: String, _ name: String) throws(Problem) -> Cursor {
        guard let cursor = Cursor(text: text) else {
            throw Problem(
                .badRequest, "bad-cursor",
                "\(name) must be a cursor as an answer's State-Cursor or next has it: <epoch>.<version>")
        }
        return cursor
    }

    private func wait(_ parameters: Parameters, _ request: Request) throws(Problem) -> Wait? {
        let longest = limits.waitMax
        if parameters.has("wait") {
            guard let text = parameters.value("wait") else { return Wait(duration: limits.waitDefault) }
            guard let seconds = Double(text), seconds.isFinite, seconds >= 0 else {
                throw Problem(.badRequest, "bad-parameter", "wait must be a number of seconds, 0 or more")
            }
            guard seconds > 0 else { return nil }
            let isTooLong = seconds > Double(longest.components.seconds)
            return isTooLong
                ? Wait(duration: longest, applied: Int(longest.components.seconds))
                : Wait(duration: .milliseconds(Int(seconds * 1000)))
        }
        return preferredWait(request)
    }

    /// The wait that a client has only a preference for.
    func preferredWait(_ request: Request) -> Wait? {
        switch Preferences(request.fields[values: .prefer]).wait {
        case .usual?: return Wait(duration: limits.waitDefault, applied: Int(limits.waitDefault.components.seconds))
        case .seconds(0)?, nil: return nil
        case .seconds(let seconds)?:
            let duration = min(.seconds(min(seconds, 86_400)), limits.waitMax)
            return Wait(duration: duration, applied: Int(duration.components.seconds))
        }
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
