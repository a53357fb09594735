package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

package enum ForkRequest: Sendable {
    case make(ForkOrder)
    case list(Style)
    case describe(String, Style)
    case remove(String)
    case inside(String, Request)
}

package struct ForkOrder: Sendable {
    /// The cursor of the state to begin with; nil for that of `to`.
    package var from: Cursor?
    /// The cursor of the last commit to run; nil for the latest.
    package var to: Cursor?
    package var skipped: [String] = []
    package var insertions: [Fork.Insertion] = []
    package var style: Style
}

package struct ForkDescription: Sendable {
    package var name: String
    package var from: Cursor
    package var to: Cursor
    package var latest: Cursor
    package var expiry: Timestamp
    package var fork: Fork

    package init(name: String, from: Cursor, to: Cursor, latest: Cursor, expiry: Timestamp, fork: Fork) {
        (self.name, self.from, self.to) = (name, from, to)
        (self.latest, self.expiry, self.fork) = (latest, expiry, fork)
    }
}

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
        guard streamFormat(request) == nil else { throw .badParameter("a fork has no streams; wait with ?wait=") }
        return .forks(.inside(name, inner(request)))
    }

    /// Whether a text has the form of a fork's name: lower case, so that no client folds its path into the present's.
    package static func isForkName(_ text: String) -> Bool {
        let digits = text.utf8.dropFirst()
        return text.utf8.first == UInt8(ascii: "f") && (1...13).contains(digits.count)
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
    }

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
        var order = ForkOrder(style: try Parameters(routed.target, known: ["pretty"]).style())
        for (key, value) in try members(of: routed) {
            let pointer = JSONPointer([key])
            switch key {
            case "from": order.from = try cursor(in: value, pointer, routed)
            case "to": order.to = try cursor(in: value, pointer, routed)
            case "skip":
                guard case .array(let ids) = value else { throw Self.invalid(pointer, "expected an array of IDs") }
                for (index, id) in ids.enumerated() {
                    guard case .string(let id) = id else {
                        throw Self.invalid(pointer.appending("\(index)"), "expected an ID, as a commit has it")
                    }
                    order.skipped.append(id)
                }
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
    ) throws(Problem) -> Fork.Insertion {
        guard case .object(let members) = value, let after = members["after"], let action = members["action"],
            members.members.count == 2
        else { throw Self.invalid(pointer, "expected an object with after, a cursor, and action") }
        let place = pointer.appending("action")
        guard case .object(let parts) = action, case .string(let type)? = parts["type"], routed.store.dispatches(type)
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
        return Fork.Insertion(
            after: try cursor(in: after, pointer.appending("after"), routed), type: type, id: id,
            action: JSONValue.object(recorded).text)
    }

    func cursor(in value: JSONValue, _ pointer: JSONPointer, _ routed: RoutedRequest) throws(Problem) -> Cursor {
        guard case .string(let text) = value, let cursor = Cursor(text: text) else {
            throw Self.invalid(pointer, "expected a cursor")
        }
        let bounds = routed.circumstances.bounds
        guard cursor.epoch == bounds.latest.epoch, cursor.version <= bounds.latest.version else {
            throw lost(.lost, bounds, routed.store)
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
            parts: [(pointer.description, detail)])
    }

    // MARK: Answers

    package func response(
        to description: ForkDescription, isNew: Bool = false, style: Style, latest: Cursor
    ) -> Response {
        var response = Response.json(
            isNew ? .created : .ok, json(description).text, style: style, latest: latest)
        if isNew { response.fields[.location] = "/v1/forks/\(description.name)" }
        return response
    }

    package func response(toList descriptions: [ForkDescription], style: Style, latest: Cursor) -> Response {
        .json(.ok, JSONValue.of(("forks", .array(descriptions.map(json)))).text, style: style, latest: latest)
    }

    private func json(_ description: ForkDescription) -> JSONValue {
        let (fork, epoch) = (description.fork, description.from.epoch)
        let refusals = fork.refusals.map { refusal in
            var shown: JSONValue = ["id": .string(refusal.id)]
            if let version = refusal.version { shown["cursor"] = .string(Cursor(epoch, version).description) }
            shown["type"] = .string(refusal.type)
            if let code = refusal.code { shown["code"] = .string(code) }
            shown["detail"] = .string(refusal.detail)
            return shown
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
    package static let noSuchFork = Problem(
        .notFound, "no-such-fork", "there is no fork of this name: it has expired, or was ended")

    package static func tooManyForks(_ most: Int, isOwn: Bool) -> Problem {
        let detail =
            "\(isOwn ? "this client" : "this server") has \(most) forks, which is the most; end one with DELETE, or try again when one has expired"
        return isOwn ? tooMany("too-many-forks", after: 60, detail) : busy("too-many-forks", after: 60, detail)
    }

    package static func forkTakesLong(_ time: Duration) -> Problem {
        forkTooLong("the fork has not run all its commits in \(time)")
    }

    package static func forkTooLong(_ most: Int) -> Problem { forkTooLong("a fork runs at most \(most) commits again") }

    private static func forkTooLong(_ detail: String) -> Problem {
        Problem(.unprocessableContent, "fork-too-long", "\(detail); begin with a later one")
    }
}
