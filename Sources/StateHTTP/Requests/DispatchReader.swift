internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

extension Contract {
    /// Reads the head of a POST of actions.
    func dispatchOptions(_ routed: RoutedRequest) throws(Problem) -> DispatchOptions {
        let (request, scope) = (routed.request, routed.scope)
        let parameters = try Parameters(routed.target, known: ["dry-run", "path", "pretty"])
        let purpose: Transaction.Purpose = try parameters.flag("dry-run") ? .dryRun : .commit
        let style = try parameters.style()
        let tagGuard = try tagGuard(request, parameters, scope)
        let key = try idempotencyKey(request)
        let form = try form(request)
        return DispatchOptions(
            form: form, scope: scope, style: style, returning: Preferences(request.fields[values: .prefer]).returning,
            wait: form == .one && purpose == .commit ? preferredWait(request) : nil, tagGuard: tagGuard, key: key,
            purpose: purpose)
    }

    /// Reads the body of a POST of actions.
    func dispatch(_ body: [UInt8], _ options: DispatchOptions) throws(Problem) -> Plan {
        switch options.form {
        case .one:
            var hint = Hint.nearestNames
            let transaction = options.applied(to: try transaction(body, options.scope, &hint), body: body, line: nil)
            return .dispatch(DispatchRequest(options: options, content: .one(transaction)))
        case .lines:
            var found: [DispatchRequest.Line] = []
            // Looking for near names costs more than anything else that a faulty line needs.
            var hint = Hint.nearestNames
            guard body.count(where: { $0 == UInt8(ascii: "\n") }) < limits.bulkLinesMax else {
                throw Problem(
                    .contentTooLarge, "too-many-lines",
                    "a bulk load has at most \(limits.bulkLinesMax) lines; send it in parts",
                    members: [.init("limit", Array(String(limits.bulkLinesMax).utf8))])
            }
            let lines = body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() where !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) {
                let content: Result<Transaction, Problem>
                do throws(Problem) {
                    let transaction = try transaction(Array(line), options.scope, &hint)
                    content = .success(options.applied(to: transaction, body: Array(line), line: index))
                } catch {
                    content = .failure(error)
                }
                found.append(.init(index + 1, content))
            }
            guard !found.isEmpty else {
                throw Problem(.badRequest, "malformed-json", "the body is empty; one action a line was expected")
            }
            return .dispatch(DispatchRequest(options: options, content: .lines(found)))
        }
    }

    private func form(_ request: Request) throws(Problem) -> DispatchRequest.Form {
        if let coding = request.fields[.contentEncoding], coding.lowercased() != "identity" {
            throw Problem(
                .unsupportedMediaType, "content-coding", "the body is compressed; actions come as they are",
                fields: [.acceptEncoding: "identity"])
        }
        // As curl and most libraries spell it, without a look at parameters.
        if request.fields[.contentType] == "application/json" { return .one }
        let type = request.fields[.contentType]?.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        switch type {
        case "application/json"?: return .one
        case "application/x-ndjson"?: return .lines
        default:
            let found =
                type == "application/x-www-form-urlencoded"
                ? "the body came as a form, as curl -d sends it; use curl --json"
                : "actions come as application/json (curl --json) or application/x-ndjson"
            throw Problem(
                .unsupportedMediaType, "media-type", found,
                fields: [.accept: "application/json, application/x-ndjson"])
        }
    }

    private func tagGuard(
        _ request: Request, _ parameters: Parameters, _ scope: Scope
    ) throws(Problem) -> Transaction.TagGuard? {
        let path = try parameters.text("path")
        guard let value = request.fields[.ifMatch] else {
            guard path == nil else {
                throw Problem(.badRequest, "bad-parameter", "path says what If-Match guards; there is no If-Match")
            }
            return nil
        }
        guard let pointer = JSONPointer(text: path ?? "") else {
            throw Problem(.badRequest, "bad-parameter", "path must be a JSON Pointer, empty or beginning with /")
        }
        switch EntityTagCondition(value) {
        case .any?: return .init(scope.outer(pointer), .any)
        case .tags(let tags)?:
            // If-Match compares strongly: a weak tag matches nothing.
            let strong = tags.filter { !$0.isWeak }.map(\.opaque)
            guard !strong.isEmpty else {
                throw Problem(
                    .preconditionFailed, "precondition-failed",
                    "If-Match needs a strong tag: one that begins with W/, as answers to ?pretty have, matches nothing",
                    members: [.string("pointer", pointer.description)])
            }
            return .init(scope.outer(pointer), .tags(strong))
        case nil: throw Problem(.badRequest, "bad-entity-tag", "If-Match must be * or a list of tags in double quotes")
        }
    }

    private func idempotencyKey(_ request: Request) throws(Problem) -> String? {
        guard let field = request.fields[.idempotencyKey] else { return nil }
        var key = field
        if field.utf8.first == UInt8(ascii: "\"") {
            guard field.utf8.count >= 2, field.utf8.last == UInt8(ascii: "\"") else {
                throw Problem(.badRequest, "bad-idempotency-key", "the quotes around Idempotency-Key do not match")
            }
            key = Self.unescaped(field.dropFirst().dropLast())
        }
        guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw Problem(
                .badRequest, "bad-idempotency-key", "Idempotency-Key must be 1 to 255 printable ASCII characters")
        }
        return key
    }

    /// The content of a structured-field string (RFC 8941, section 3.3.3): a backslash stands before quote and backslash.
    private static func unescaped(_ content: Substring) -> String {
        var result = ""
        var isEscaped = false
        for character in content {
            isEscaped = character == "\\" && !isEscaped
            if !isEscaped { result.append(character) }
        }
        return result
    }

    /// Reads one action, or an array of them as one transaction.
    private func transaction(_ body: [UInt8], _ scope: Scope, _ hint: inout Hint) throws(Problem) -> Transaction {
        let document: JSONDocument
        do throws(JSONFault) {
            document = try JSONDocument(body, depthMax: limits.depthMax)
        } catch {
            let code =
                switch error.kind {
                case .duplicateKey: "duplicate-key"
                case .tooDeep: "too-deep"
                case .malformed, .mismatch: "malformed-json"
                }
            throw Problem(
                .badRequest, code, "the body cannot be read as JSON: \(error.detail)",
                parts: [.init(error.pointer.description, error.detail)])
        }
        let node = JSONNode(document)
        guard let elements = node.elements else {
            var expectations: [Transaction.Expectation] = []
            let item = try item(node, &expectations, scope, &hint)
            var transaction = Transaction([item])
            transaction.expectations = expectations
            return transaction
        }
        guard !elements.isEmpty else {
            throw Problem(.unprocessableContent, "empty-batch", "a batch needs at least one action")
        }
        guard elements.count <= limits.batchActionsMax else {
            throw Problem(
                .unprocessableContent, "batch-too-large", "a batch holds at most \(limits.batchActionsMax) actions")
        }
        var expectations: [Transaction.Expectation] = []
        var items: [Transaction.Item] = []
        for element in elements { items.append(try item(element, &expectations, scope, &hint)) }
        var transaction = Transaction(items, form: .batch)
        transaction.expectations = expectations
        return transaction
    }

    private func item(
        _ node: JSONNode, _ expectations: inout [Transaction.Expectation], _ scope: Scope, _ hint: inout Hint
    ) throws(Problem) -> Transaction.Item {
        guard let members = node.members else {
            throw invalid(node.pointer, "expected an action: an object with \"type\" and \"payload\"")
        }
        var type: String?
        var payload: JSONNode?
        var id: String?
        var meta: [UInt8]?
        for (key, value) in members {
            switch key {
            case "type":
                guard let text = value.string else { throw invalid(value.pointer, "expected a string") }
                type = text
            case "payload":
                guard value.members != nil else { throw invalid(value.pointer, "expected an object") }
                payload = value
            case "id":
                guard let text = value.string, (1...255).contains(text.utf8.count) else {
                    throw invalid(value.pointer, "expected a string of 1 to 255 bytes")
                }
                guard Cursor(text: text) == nil else {
                    throw invalid(value.pointer, "is spelled like a cursor, which is how the server names commits")
                }
                id = text
            case "meta":
                guard value.members != nil else { throw invalid(value.pointer, "expected an object") }
                meta = value.text
            case "expect": try expect(value, &expectations, scope)
            default:
                throw invalid(value.pointer, "there is no such field; known are type, payload, id, meta, expect")
            }
        }
        guard let type else { throw invalid(node.pointer.appending("type"), "is missing; expected a string") }
        guard let actionType = scope.actions[type] else {
            defer { hint = .list }
            throw unknownType(type, at: node.pointer.appending("type"), scope, hint)
        }
        return .init(try decode(actionType, payload, in: node), id: id, meta: meta)
    }

    private func decode(
        _ type: any Action.Type, _ payload: JSONNode?, in node: JSONNode
    ) throws(Problem) -> any Action {
        do throws(JSONFault) {
            return try type.decode(payload: payload)
        } catch {
            // Without a payload, the places are counted from where it should have been.
            let pointer =
                payload == nil
                ? JSONPointer(node.pointer.tokens + ["payload"] + error.pointer.tokens) : error.pointer
            throw invalid(pointer, error.detail)
        }
    }

    private func expect(
        _ node: JSONNode, _ expectations: inout [Transaction.Expectation], _ scope: Scope
    ) throws(Problem) {
        guard let elements = node.elements else {
            throw invalid(node.pointer, "expected an array of objects with \"path\" and \"value\"")
        }
        guard expectations.count + elements.count <= limits.expectationsMax else {
            throw invalid(node.pointer, "expected at most \(limits.expectationsMax) tests in a commit")
        }
        for element in elements {
            guard let members = element.members, members.count(where: { _ in true }) == 2,
                let path = members.first(where: { $0.key == "path" })?.value,
                let value = members.first(where: { $0.key == "value" })?.value
            else { throw invalid(element.pointer, "expected an object with \"path\" and \"value\"") }
            guard let pointer = path.string.flatMap(JSONPointer.init(text:)) else {
                throw invalid(path.pointer, "expected a JSON Pointer, empty or beginning with /")
            }
            expectations.append(.init(scope.outer(pointer), value.value))
        }
    }

    private func invalid(_ pointer: JSONPointer, _ detail: String) -> Problem {
        let place = pointer.tokens.isEmpty ? "the body" : pointer.description
        return Problem(
            .unprocessableContent, "invalid-action", "\(place): \(detail)", parts: [.init(pointer.description, detail)])
    }

    /// What the answer to an unknown type of action helps the client with.
    enum Hint {
        /// The names that the client may have meant; for the first fault of a body.
        case nearestNames
        /// Where the client finds all names.
        case list
    }

    func unknownType(
        _ type: String, at pointer: JSONPointer?, _ scope: Scope, _ hint: Hint = .nearestNames
    ) -> Problem {
        let near = hint == .nearestNames ? NearestNames.of(type, among: scope.types) : []
        let hint =
            near.isEmpty ? "GET \(scope.path)/actions lists them" : "did you mean \(near.joined(separator: " or "))?"
        let detail = "there is no action of this type; \(hint)"
        return Problem(
            pointer == nil ? .badRequest : .unprocessableContent, "unknown-action", detail,
            parts: pointer.map { [.init($0.description, detail)] } ?? [])
    }
}

extension DispatchOptions {
    /// A transaction with what the head says of it.
    fileprivate func applied(to transaction: Transaction, body: [UInt8], line: Int?) -> Transaction {
        var transaction = transaction
        transaction.tagGuard = tagGuard
        transaction.purpose = purpose
        transaction.wantsRepresentation = returning == .representation
        if let key {
            // Each line of a bulk load is a commit of its own: a retry must find each by itself. No client's key holds
            // a line feed.
            transaction.idempotency = (line.map { "\(key)\n\($0)" } ?? key, ContentHash(body).text)
        }
        return transaction
    }
}
