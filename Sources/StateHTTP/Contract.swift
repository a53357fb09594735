package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

package struct ContractLimits: Sendable {
    package var bodyBytesMax = 8 << 20
    package var depthMax = 64
    package var waitDefault = Duration.seconds(25)
    package var waitMax = Duration.seconds(55)
    package var changesLimitDefault = 100
    package var changesLimitMax = 1000
    package var queryLimitMax = 1000
    package var batchActionsMax = 10_000
    package var bulkLinesMax = 200_000
    package var bulkFaultsMax = 1000
    /// The most expectations in one transaction; each costs a lookup inside the store's turn.
    package var expectationsMax = 1000
    package var idempotencyLifetime = Duration.seconds(86_400)
    /// The least bytes of an answer that is compressed for a client that takes it so; 0: none.
    package var compressedBytesMin = 1024
    package var debounceMax = Duration.seconds(10)
    package var hasPage = true
    package var name: String?
    package var pageConfirms = false
    /// The limits that other parts of the server enforce, by the names of their settings.
    package var transport: [(name: String, value: Int)] = []

    package init() {}
}

/// The HTTP interface: it reads a request into a plan and writes an outcome as a response; every function is pure.
package struct Contract: Sendable {
    let catalogue: Catalogue
    let limits: ContractLimits
    package var parts: [StatePart] { catalogue.parts }
    /// The path of the whole store, without a slash at the end; another than `/v1` for a fork.
    private var root = "/v1"
    private let hosts: AllowedHosts
    private let origins: AllowedOrigins
    private let stores: [String: Scope]
    let schemas: DomainSchemas
    let clientTypes: [UInt8]
    private(set) var documents = SharedDocuments()
    let keyedAnswers = KeyedAnswers()

    package init(
        catalogue: Catalogue, limits: ContractLimits = ContractLimits(), hosts: AllowedHosts = .any,
        origins: AllowedOrigins = AllowedOrigins([]), clientTypes: [UInt8] = []
    ) {
        (self.catalogue, self.limits, self.hosts) = (catalogue, limits, hosts)
        (self.origins, self.clientTypes) = (origins, clientTypes)
        stores = Dictionary(uniqueKeysWithValues: catalogue.stores.map { ($0.name, $0) })
        schemas = DomainSchemas(catalogue)
    }

    package func ofFork(named name: String) -> Contract {
        var contract = self
        (contract.root, contract.documents) = ("/v1/forks/\(name)", SharedDocuments())
        return contract
    }

    /// Reads a request into a plan; a request with a fault gives a plan that responds with a problem.
    ///
    /// The `remembered` memory is of an earlier request with the same head; the returned one is nil if it stays.
    /// The `circumstances` have its access, if there is one; a known head of a POST needs none of them.
    package func plan(
        for request: Request, remembered: RememberedHead? = nil, in circumstances: @autoclosure () -> Circumstances
    ) -> (plan: Plan, remember: RememberedHead?) {
        do throws(Problem) {
            if let options = remembered?.options { return (.dispatch(try dispatch(request, options)), nil) }
            let circumstances = circumstances()
            var plan = try route(request, circumstances)
            // A client that the server does not know learns nothing of the history.
            guard case .success(let access) = circumstances.authentication else { return (plan, nil) }
            if case .dispatch(let dispatch) = plan, request.method == .post {
                return (plan, RememberedHead(access, dispatch.options))
            }
            if case .respond(var response) = plan {
                response.fields[.stateCursor] = circumstances.latest.description
                plan = .respond(response)
            }
            return (plan, remembered == nil ? RememberedHead(access, nil) : nil)
        } catch {
            var error = error
            let path = request.target.utf8.prefix { $0 != UInt8(ascii: "?") }
            if error.code == "no-such-route", path.count > 1, path.last == UInt8(ascii: "/") {
                error.detail += "; the path ends with a slash"
            }
            // A browser asks for a name and a password, so that a person can open an address at all.
            if error.status == .unauthorized, isNavigation(request) {
                error.fields.append(
                    .init(name: .wwwAuthenticate, value: "Basic realm=\"storekeeper\", charset=\"UTF-8\""))
            }
            let circumstances = circumstances()
            let isKnown = if case .success = circumstances.authentication { true } else { false }
            let response = response(
                to: error, latest: isKnown ? circumstances.latest : nil, name: circumstances.name)
            return (.respond(response), nil)
        }
    }

    private func route(_ request: Request, _ circumstances: Circumstances) throws(Problem) -> Plan {
        if request.method == .options, request.target == "*" {
            try checkHost(request)
            return .respond(Response(status: .noContent, fields: [.allow: "GET, HEAD, POST, OPTIONS"]))
        }
        var target: RequestTarget
        do throws(RequestTarget.Fault) {
            target = try RequestTarget(request.target)
        } catch {
            throw Problem(.badRequest, "bad-target", error.detail)
        }
        target.takeToken(of: request)
        let path = target.segments
        let probe = path.count == 1 ? path[0] : ""
        // Probes come by whatever address an orchestrator knows, and say nothing about the state.
        if probe != "livez", probe != "readyz" { try checkHost(request) }
        if let preflight = origins.preflight(request) { return .respond(preflight) }
        // The page has nothing of the state, and asks for a credential itself.
        if let name = file(request, path) {
            if let options = try onlyReads(request) { return .respond(options) }
            return .file(name)
        }
        switch probe {
        case "livez": return try operations(.live, request, target)
        case "readyz": return try readiness(request, target, circumstances)
        default: break
        }
        let access = try circumstances.authentication.get()
        var routed = RoutedRequest(
            request: request, target: target, store: VisibleStore(scope: catalogue.whole, access: access, root: root),
            circumstances: circumstances)
        switch (path.first, path.dropFirst().first) {
        case ("metrics", nil) where access.operates: return try operations(.metrics, request, target)
        case ("v1", "stores") where path.count > 2:
            guard !path[2].isEmpty else { throw Self.noSuchRoute }
            let names = names(ofStores: access)
            guard let scope = stores.value(named: path[2]), names.contains(scope.name) else {
                throw Problem(
                    .notFound, "no-such-store",
                    names.isEmpty
                        ? "there are no derived stores"
                        : "there is no derived store of this name; there are \(names.joined(separator: ", "))")
            }
            routed.store = VisibleStore(scope: scope, access: access, root: root)
            return try route(routed, path.dropFirst(3))
        case ("v1", "journal") where access.backsUp && path.count == 3 && path[2] == "backup":
            return try operations(.backup(access), request, target)
        case ("v1", "me") where path.count == 2: return try fixed(routed) { Self.description(of: access) }
        case ("v1", "operations") where access.operates && path.count == 2:
            if let options = try onlyReads(request) { return .respond(options) }
            return .operations(try Parameters(target, known: ["pretty"]).style())
        case ("v1", "forks") where access.forks: return try forks(routed, Array(path.dropFirst(2)))
        case ("v1", "bisect") where access.seesEverything && path.count == 2: return try bisect(routed)
        case ("v1", "stores"): return try fixed(routed) { list(ofStores: names(ofStores: access)) }
        case ("v1", _): return try route(routed, path.dropFirst())
        default: throw Self.noSuchRoute
        }
    }

    /// The file of the program that a request asks for, which needs no credential; nil for any other request.
    private func file(_ request: Request, _ path: [String]) -> String? {
        switch (path.first, path.dropFirst().first) {
        case ("v1", let name?) where ["client.js", "client.py"].contains(name) && path.count == 2: name
        case ("v1", "docs"):
            path.count == 2
                ? "docs/StateServer.md"
                : path.dropFirst().joined(separator: "/") + (path.last?.contains(".") == true ? "" : ".md")
        case ("page", let name?) where limits.hasPage && path.count == 2: name
        case (nil, _) where limits.hasPage && isNavigation(request): "index.html"
        case ("", nil) where limits.hasPage && isNavigation(request): "index.html"
        default: nil
        }
    }

    /// Whether a person has opened an address in a browser, and not a script: `Sec-Fetch-Mode` is absent on plain HTTP.
    private func isNavigation(_ request: Request) -> Bool {
        request[values: .accept].flatMap(WeightedNames.read).contains { $0.name == "text/html" && $0.weight > 0 }
    }

    private func names(ofStores access: Access) -> [String] {
        stores.values.filter { access.sees($0.pointer) }.map(\.name).sorted()
    }

    private func checkHost(_ request: Request) throws(Problem) {
        guard !request.head.isLocal,
            let host = RequestTarget.authority(of: request.target).map(String.init) ?? request.host, !hosts.allows(host)
        else { return }
        throw Problem(
            HTTPResponse.Status(code: 421, reasonPhrase: "Misdirected Request"), "unknown-host",
            "this server is not known by the name in the request; the setting allowed_hosts lists its names")
    }

    private func route(_ routed: RoutedRequest, _ path: ArraySlice<String>) throws(Problem) -> Plan {
        switch path.first {
        case nil: return try fixed(routed) { identity(routed.circumstances.bounds, routed.store) }
        case "" where path.count == 1: return try route(routed, [])
        case "state":
            let pointer = routed.store.outer(JSONPointer(try tokens(path.dropFirst())))
            return try read(routed.store.selection(pointer), routed)
        case "views": return try views(routed, Array(path.dropFirst()))
        case "actions": return try actions(routed, Array(path.dropFirst()))
        case "changes" where path.count == 1: return try changes(routed)
        case "schedule" where routed.store.isWhole: return try schedule(routed, Array(path.dropFirst()))
        case "streams": return try streams(routed, Array(path.dropFirst()))
        case "openapi.json" where path.count == 1: return try document(\.openAPI, routed)
        case "client.d.ts" where path.count == 1: return try document(\.types, routed)
        default: throw Self.noSuchRoute
        }
    }

    package static let noSuchRoute = Problem(
        .notFound, "no-such-route", "there is nothing at this path; GET /v1 tells where state, actions and changes are")

    private func list(ofStores names: [String]) -> [UInt8] {
        let list = names.map { JSONValue.of(("name", .string($0)), ("href", .string("\(root)/stores/\($0)"))) }
        return JSONValue.of(("stores", .array(list))).text
    }

    private func list(ofViews store: VisibleStore) -> [UInt8] {
        let views = store.views.sorted { $0.key < $1.key }.map { name, whole in
            var view = JSONObject()
            view["name"] = .string(name)
            view["href"] = .string("\(store.path)/views/\(name)")
            view["parameters"] = schemas.addresses[whole]?.schema
            if catalogue.views[whole]?.takesSubject == true { view["subject"] = true }
            return JSONValue.object(view)
        }
        return JSONValue.of(("views", .array(views))).text
    }

    private func tokens(_ segments: ArraySlice<String>) throws(Problem) -> [String] {
        // By the letter, `/v1/state/` names an empty key; a client that sends it means the whole state.
        let segments = segments.count == 1 && segments.first == "" ? [] : segments
        // A watch keeps an entry for each of them.
        guard segments.count <= JSONPointer.tokensMax else {
            throw .badPointer("a JSON Pointer has at most \(JSONPointer.tokensMax) parts here")
        }
        var tokens: [String] = []
        tokens.reserveCapacity(segments.count)
        for segment in segments {
            guard segment.utf8.contains(UInt8(ascii: "~")) else {
                tokens.append(segment)
                continue
            }
            guard let token = JSONPointer.unescape(segment.utf8) else {
                throw .badPointer("a ~ in a JSON Pointer must be followed by 0 (for ~) or 1 (for /)")
            }
            tokens.append(token)
        }
        return tokens
    }

    private func readiness(
        _ request: Request, _ target: RequestTarget, _ circumstances: Circumstances
    ) throws(Problem) -> Plan {
        if let options = try onlyReads(request) { return .respond(options) }
        guard target.parameters.contains(where: { $0.name == "verbose" }) else {
            _ = try Parameters(target, known: [])
            return .ready(isVerbose: false)
        }
        let operates = try circumstances.authentication.get().operates
        return .ready(isVerbose: try Parameters(target, known: operates ? ["verbose"] : []).flag("verbose"))
    }

    private func operations(_ plan: Plan, _ request: Request, _ target: RequestTarget) throws(Problem) -> Plan {
        if let options = try onlyReads(request) { return .respond(options) }
        _ = try Parameters(target, known: [])
        return plan
    }

    func fixed(_ routed: RoutedRequest, _ body: () -> [UInt8]) throws(Problem) -> Plan {
        if let options = try onlyReads(routed.request) { return .respond(options) }
        let parameters = try Parameters(routed.target, known: ["pretty"])
        let style = try parameters.style()
        return .respond(
            compressed(.json(.ok, body(), style: style), style == .compact ? coding(of: routed.request) : nil))
    }

    private func views(_ routed: RoutedRequest, _ path: [String]) throws(Problem) -> Plan {
        let names = routed.store.views.keys.sorted()
        if path.isEmpty { return try fixed(routed) { list(ofViews: routed.store) } }
        guard path.count == 1, let name = routed.store.views.value(named: path[0]) else {
            throw Problem(
                .notFound, "no-such-view",
                names.isEmpty
                    ? "there is no view here that this client may see"
                    : "there is no such view; there are \(names.joined(separator: ", "))")
        }
        return try read(.view(name), routed)
    }

    private func actions(_ routed: RoutedRequest, _ path: [String]) throws(Problem) -> Plan {
        if path.isEmpty {
            switch routed.request.method {
            case .post: return .dispatch(try dispatch(routed.request, try dispatchOptions(routed)))
            case .get, .head: return try document(\.catalogue, routed)
            default: return .respond(try Self.refuseMethod(routed.request, allowed: "GET, HEAD, POST, OPTIONS"))
            }
        }
        let hint = path == [""] ? "actions go to \(routed.store.path)/actions, without a slash at the end" : nil
        if let options = try onlyReads(routed.request, hint: hint) { return .respond(options) }
        let parameters = try Parameters(routed.target, known: ["pretty"])
        // An ID that a client gave may hold a slash.
        return .outcome(id: path.joined(separator: "/"), routed.store, try parameters.style())
    }

    // MARK: Shared by several routes

    func cursor(_ text: String, _ name: String) throws(Problem) -> Cursor {
        if let cursor = Cursor(text: text) { return cursor }
        throw Problem(
            .badRequest, "bad-cursor",
            "\(name) must be a cursor, such as the State-Cursor or the next of an answer: <epoch>.<version>")
    }

    /// Returns nil for GET and HEAD, and the response to OPTIONS; any other method is a problem.
    func onlyReads(_ request: Request, hint: @autoclosure () -> String? = nil) throws(Problem) -> Response? {
        switch request.method {
        case .get, .head: nil
        default: try Self.refuseMethod(request, allowed: "GET, HEAD, OPTIONS", hint: hint())
        }
    }

    static func refuseMethod(_ request: Request, allowed: String, hint: String? = nil) throws(Problem) -> Response {
        if request.method == .options { return Response(status: .noContent, fields: [.allow: allowed]) }
        throw Problem(
            .methodNotAllowed, "method-not-allowed",
            "\(request.method.rawValue) cannot be used here; \(allowed) can\(hint.map { "; \($0)" } ?? "")",
            fields: [.allow: allowed])
    }
}
