package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    func forks(_ routed: RoutedRequest, _ path: [String]) throws(Problem) -> Plan {
        let request = routed.request
        guard let name = path.first, !(path.count == 1 && name.isEmpty) else {
            switch request.method {
            case .post: return .forks(.make(try order(routed)))
            case .get, .head: return .forks(.list(try Parameters(routed.target, known: ["pretty"]).style()))
            default: return .respond(try Self.refuseMethod(request, allowed: "GET, HEAD, POST, OPTIONS"))
            }
        }
        guard Self.isForkName(name) else { throw .noSuchFork }
        guard path.count > 1 else {
            switch request.method {
            case .get, .head: return .forks(.describe(name, try Parameters(routed.target, known: ["pretty"]).style()))
            case .delete:
                _ = try Parameters(routed.target, known: ["pretty"])
                return .forks(.remove(name))
            default: return .respond(try Self.refuseMethod(request, allowed: "GET, HEAD, DELETE, OPTIONS"))
            }
        }
        let routes = ["state", "views", "actions", "changes", "schedule", "stores", "openapi.json", "client.d.ts"]
        guard routes.contains(path[1]) else { throw Self.noSuchRoute }
        guard streamFormat(request, offered: [.events, .lines]) == nil else {
            throw Problem(.badRequest, "bad-parameter", "a fork has no streams; wait with ?wait=")
        }
        return .forks(.inside(name, inner(request)))
    }

    /// Whether a text has the form of a fork's name: `f` and 1 to 13 digits and lower-case letters, so that no client
    /// folds the path of a fork into the path of the present.
    package static func isForkName(_ text: String) -> Bool {
        let digits = text.utf8.dropFirst()
        return text.utf8.first == UInt8(ascii: "f") && (1...13).contains(digits.count)
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
    }

    /// A request to a fork as one to a whole store: without the segments `forks` and the name.
    private func inner(_ request: Request) -> Request {
        let origin = RequestTarget.originForm(request.target)
        let path = origin.utf8.prefix { $0 != UInt8(ascii: "?") }
        let query = origin.utf8.dropFirst(path.count)
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst(4)
        // The scheme and the authority of an absolute form stay: the authority counts in place of `Host`.
        let target =
            String(Substring(request.target.utf8.dropLast(origin.utf8.count))) + "/v1/"
            + segments.map { String(Substring($0)) }.joined(separator: "/") + String(Substring(query))
        return Request(
            Request.Head(method: request.method, target: target, fieldsOf: request.head), request.own,
            body: request.body, client: request.client)
    }

    private func order(_ routed: RoutedRequest) throws(Problem) -> ForkOrder {
        var order = ForkOrder(
            skipped: [], insertions: [], style: try Parameters(routed.target, known: ["pretty"]).style())
        for (key, value) in try members(of: routed) {
            let pointer = JSONPointer([key])
            switch key {
            case "from": order.from = try cursor(in: value, pointer, routed)
            case "to": order.to = try cursor(in: value, pointer, routed)
            case "skip": order.skipped = try texts(in: value, pointer)
            case "insert":
                guard case .array(let elements) = value else { throw Self.invalid(pointer, "expected an array") }
                for (index, element) in elements.enumerated() {
                    order.insertions.append(try insertion(element, pointer.appending("\(index)"), routed))
                }
                order.insertions.sort { $0.after.version < $1.after.version }
            default:
                throw Self.invalid(pointer, "this member is not known; the known members are from, to, skip and insert")
            }
        }
        return order
    }

    private func insertion(
        _ value: JSONValue, _ pointer: JSONPointer, _ routed: RoutedRequest
    ) throws(Problem) -> ForkOrder.Insertion {
        guard case .object(let members) = value, let after = members["after"], let action = members["action"],
            members.members.count == 2
        else { throw Self.invalid(pointer, "expected an object with after, a cursor, and action") }
        let place = pointer.appending("action")
        guard case .object(let parts) = action, case .string(let type)? = parts["type"],
            routed.store.dispatches(type)
        else { throw Self.invalid(place.appending("type"), "expected the type of an action that you may dispatch") }
        var id: String?
        for (key, value) in parts.members {
            switch (key, value) {
            case ("type", _), ("payload", .object), ("meta", .object): break
            case ("id", .string(let text)):
                if let fault = Self.fault(ofID: text) { throw Self.invalid(place.appending("id"), fault) }
                id = text
            default: throw Self.invalid(place.appending(key), "an action to insert has type, payload, id and meta")
            }
        }
        var recorded = JSONObject()
        for key in ["id", "type", "payload", "meta"] { if let value = parts[key] { recorded[key] = value } }
        return ForkOrder.Insertion(
            after: try cursor(in: after, pointer.appending("after"), routed), type: type, id: id,
            action: JSONValue.object(recorded).text)
    }

    private func texts(in value: JSONValue, _ pointer: JSONPointer) throws(Problem) -> [String] {
        guard case .array(let elements) = value else { throw Self.invalid(pointer, "expected an array of IDs") }
        var texts: [String] = []
        for (index, element) in elements.enumerated() {
            guard case .string(let text) = element else {
                throw Self.invalid(pointer.appending("\(index)"), "expected an ID, as a commit has it")
            }
            texts.append(text)
        }
        return texts
    }

    func cursor(
        in value: JSONValue, _ pointer: JSONPointer, _ routed: RoutedRequest
    ) throws(Problem) -> Cursor {
        guard case .string(let text) = value, let cursor = Cursor(text: text) else {
            throw Self.invalid(pointer, "expected a cursor")
        }
        let bounds = routed.circumstances.bounds
        guard cursor.epoch == bounds.latest.epoch, cursor.version <= bounds.latest.version else {
            throw lost("cursor-lost", bounds, routed.store)
        }
        return cursor
    }

    func members(of routed: RoutedRequest) throws(Problem) -> [(key: String, value: JSONValue)] {
        guard try form(routed.request) == .one else {
            throw Problem(.unsupportedMediaType, "media-type", "this path takes application/json")
        }
        guard !routed.request.body.isEmpty else { return [] }
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue(
                parsing: JSONText.withoutByteOrderMark(routed.request.body), depthMax: limits.depthMax)
        } catch {
            throw .unreadable(error)
        }
        guard case .object(let object) = value else { throw Self.invalid(JSONPointer([]), "expected an object") }
        return object.members
    }

    static func invalid(_ pointer: JSONPointer, _ detail: String) -> Problem {
        Problem(
            .unprocessableContent, "invalid-request", "the body does not say what to do: \(detail)",
            parts: [.init(pointer.description, detail)])
    }

    // MARK: Answers

    /// The answer to a POST that has made a fork.
    package func response(toNew description: ForkDescription, style: Style, latest: Cursor) -> Response {
        var response = Response.json(.created, json(description).text, style: style, latest: latest)
        response.fields[.location] = "/v1/forks/\(description.name)"
        return response
    }

    /// The answer with what is known of a fork.
    package func response(to description: ForkDescription, style: Style, latest: Cursor) -> Response {
        .json(.ok, json(description).text, style: style, latest: latest)
    }

    /// The answer with all forks.
    package func response(toList descriptions: [ForkDescription], style: Style, latest: Cursor) -> Response {
        .json(
            .ok, JSONValue.of(("forks", .array(descriptions.map(json)))).text, style: style, latest: latest)
    }

    private func json(_ description: ForkDescription) -> JSONValue {
        let (fork, epoch) = (description.fork, description.from.epoch)
        let refusals = fork.refusals.map { refusal in
            JSONValue.of(
                [
                    ("id", .string(refusal.id)),
                    ("cursor", refusal.version.map { .string(Cursor(epoch, $0).description) } ?? .null),
                    ("type", .string(refusal.type)), ("code", refusal.code.map { .string($0) } ?? .null),
                    ("detail", .string(refusal.detail)),
                ].filter { $0.1 != .null })
        }
        return .of(
            ("name", .string(description.name)), ("href", .string("/v1/forks/\(description.name)")),
            ("from", .string(description.from.description)), ("to", .string(description.to.description)),
            ("cursor", .string(description.latest.description)), ("expires", .string(Self.text(description.expiry))),
            ("appliedCount", .integer(Int64(fork.appliedCount))), ("skippedCount", .integer(Int64(fork.skippedCount))),
            ("refused", .array(refusals)), ("refusedCount", .integer(Int64(fork.refusalsCount))))
    }
}

extension Problem {
    package static var noSuchFork: Problem {
        Problem(.notFound, "no-such-fork", "there is no fork of this name: it has expired, or was ended")
    }

    /// - Parameter isOwn: whether the client has its share of the forks; else the server has all that it may have.
    package static func tooManyForks(_ most: Int, isOwn: Bool) -> Problem {
        Problem(
            isOwn ? .tooManyRequests : .serviceUnavailable, "too-many-forks",
            "\(isOwn ? "this client" : "this server") has \(most) forks, which is the most; end one with DELETE, or try again when one has expired",
            fields: [.retryAfter: "60"])
    }

    package static func forkTakesLong(_ time: Duration) -> Problem {
        Problem(
            .unprocessableContent, "fork-too-long",
            "the fork has not run all its commits in \(time); begin with a later one")
    }

    package static func forkTooLong(_ most: Int) -> Problem {
        Problem(
            .unprocessableContent, "fork-too-long",
            "a fork runs at most \(most) commits again; begin with a later one")
    }
}

extension Contract {
    func bisect(_ routed: RoutedRequest) throws(Problem) -> Plan {
        guard routed.request.method == .post else {
            return .respond(try Self.refuseMethod(routed.request, allowed: "POST, OPTIONS"))
        }
        let style = try Parameters(routed.target, known: ["pretty"]).style()
        var found: (test: ValueTest?, from: Cursor?, to: Cursor?)
        for (key, value) in try members(of: routed) {
            let pointer = JSONPointer([key])
            switch key {
            case "test": found.test = try test(value, pointer)
            case "from": found.from = try cursor(in: value, pointer, routed)
            case "to": found.to = try cursor(in: value, pointer, routed)
            default: throw Self.invalid(pointer, "this member is not known; the known members are test, from and to")
            }
        }
        guard let test = found.test else { throw Self.invalid(JSONPointer(["test"]), "expected a test") }
        return .bisect(
            BisectRequest(test: test, from: found.from, to: found.to, store: routed.store, style: style))
    }

    private func test(_ value: JSONValue, _ place: JSONPointer) throws(Problem) -> ValueTest {
        guard case .object(let members) = value, members.members.count == 2, case .string(let text)? = members["path"],
            let (key, wanted) = members.members.first(where: { $0.key != "path" })
        else {
            throw Self.invalid(
                place, "expected path, a JSON Pointer, and one of value, minimum, maximum, exists and repeats")
        }
        guard let pointer = JSONPointer(text: text) else {
            throw Self.invalid(place.appending("path"), JSONPointer.expectation(of: text))
        }
        switch (key, wanted) {
        case ("value", _): return ValueTest(pointer, .equals(wanted))
        case ("minimum", _) where wanted.isNumber: return ValueTest(pointer, .atLeast(wanted))
        case ("maximum", _) where wanted.isNumber: return ValueTest(pointer, .atMost(wanted))
        case ("exists", .bool(let exists)): return ValueTest(pointer, .exists(exists))
        case ("repeats", .bool(let repeats)): return ValueTest(pointer, .repeats(repeats))
        case ("minimum", _), ("maximum", _): throw Self.invalid(place.appending(key), "expected a number")
        case ("exists", _), ("repeats", _): throw Self.invalid(place.appending(key), "expected true or false")
        default:
            throw Self.invalid(
                place.appending(key),
                "this member is not known; the known members are value, minimum, maximum, exists and repeats")
        }
    }

    /// The answer to a search.
    package func response(
        to request: BisectRequest, found: Result<Commit, Bisection.Miss>, looks: Int, latest: Cursor
    ) -> Response {
        var writer = JSONWriter()
        switch found {
        case .success(let commit):
            writer.raw("{\"found\":true,\"commit\":")
            write(commit, of: request.store, as: .patches, epoch: latest.epoch, to: &writer)
        case .failure(let miss):
            writer.raw("{\"found\":false,\"reason\":")
            writer.string(miss.rawValue)
        }
        writer.raw(",\"looks\":")
        writer.integer(looks)
        writer.byte(UInt8(ascii: "}"))
        return .json(.ok, writer.bytes, style: request.style, latest: latest)
    }
}
