internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

package final class RememberedHead: Sendable {
    package let access: Access
    let options: DispatchOptions?

    init(_ access: Access, _ options: DispatchOptions?) {
        self.access = access
        self.options = options
    }
}

extension Contract {
    private static let parametersOfActions: Set<ExactText> = ["dry-run", "path", "pretty"]

    func dispatchOptions(_ routed: RoutedRequest) throws(Problem) -> DispatchOptions {
        let (request, store) = (routed.request, routed.store)
        let parameters = try Parameters(routed.target, known: Self.parametersOfActions)
        let purpose: Transaction.Purpose = try parameters.flag("dry-run") ? .dryRun : .commit
        let style = try parameters.style()
        let path = try parameters.text("path")
        let form = try form(request)
        return DispatchOptions(
            form: form, store: store, style: style, returning: Preferences(request[values: .prefer]).returning,
            wait: form == .one && purpose == .commit ? preferredWait(request) : nil, path: path, purpose: purpose,
            isOfBrowser: request[.origin] != nil)
    }

    /// A fault of a single body is a problem of the request; a fault of an NDJSON line belongs to its line.
    func dispatch(_ request: Request, _ options: DispatchOptions) throws(Problem) -> DispatchRequest {
        let isConditional = request.own != nil || options.path != nil
        let conditions = isConditional ? try conditions(request, options) : nil
        let content: DispatchRequest.Content
        switch options.form {
        case .one:
            var hint = Hint.nearestNames
            content = .one(try transaction(request.body, options, conditions, line: nil, &hint))
        case .lines: content = .lines(try lines(of: request.body, options, conditions))
        }
        return DispatchRequest(options: options, conditions: conditions, content: content)
    }

    func conditions(_ request: Request, _ options: DispatchOptions) throws(Problem) -> DispatchConditions {
        let guards = try guards(request, path: options.path, options.store)
        return DispatchConditions(
            tagGuard: guards.tag, absence: guards.absence, key: try idempotencyKey(request), trace: request.trace?.text)
    }

    func form(_ request: Request) throws(Problem) -> DispatchRequest.Form {
        if let coding = request[.contentEncoding], coding.lowercased() != "identity" {
            throw Problem(
                .unsupportedMediaType, "content-coding", "the body is compressed; actions come as they are",
                fields: [.acceptEncoding: "identity"])
        }
        // Most clients send exactly this, which needs no parsing.
        let given = request[.contentType]
        if given == "application/json" { return .one }
        let parts = (given ?? "").split(separator: ";", omittingEmptySubsequences: false).map {
            $0.filter { $0 != " " && $0 != "\t" && $0 != "\"" }.lowercased()
        }
        let problem = { (detail: String) in
            Problem(
                .unsupportedMediaType, "media-type", detail,
                fields: [.accept: "application/json, application/x-ndjson"])
        }
        if let charset = parts.first(where: { $0.hasPrefix("charset=") }),
            !["charset=utf-8", "charset=utf8"].contains(charset)
        {
            throw problem("actions come in UTF-8")
        }
        switch parts.first {
        case "application/json"?: return .one
        case let type? where Self.linesTypes.contains(type): return .lines
        case "application/x-www-form-urlencoded"?:
            throw problem("the body came as a form, as curl -d sends it; use curl --json")
        default: throw problem("actions come as application/json (curl --json) or application/x-ndjson")
        }
    }

    static let linesTypes = ["application/x-ndjson", "application/ndjson", "application/jsonl"]

    private func guards(
        _ request: Request, path: String?, _ store: VisibleStore
    ) throws(Problem) -> (tag: Transaction.Expectation?, absence: Transaction.Expectation?) {
        let (match, noneMatch) = (request[.ifMatch], request[.ifNoneMatch])
        guard match != nil || noneMatch != nil else {
            guard path == nil else {
                throw .badParameter("path says what If-Match or If-None-Match guards; the request has neither")
            }
            return (nil, nil)
        }
        guard let pointer = JSONPointer(text: path ?? "") else {
            throw Problem(.badRequest, "bad-parameter", "path: \(JSONPointer.expectation(of: path ?? ""))")
        }
        let outer = store.outer(pointer)
        let isHidden = !store.access.sees(outer)
        if let noneMatch {
            guard path != nil, match == nil, EntityTagCondition(noneMatch) == .any else {
                throw Problem(
                    .badRequest, "bad-entity-tag",
                    "If-None-Match on a POST is * with path and without If-Match: the action is committed only if nothing is at path"
                )
            }
            return (nil, .init(outer, .nothing, isHidden: isHidden))
        }
        switch EntityTagCondition(match ?? "") {
        case .any?: return (.init(outer, .tags(.any), isHidden: isHidden), nil)
        case .tags(let tags)?:
            // If-Match compares strongly: a weak tag matches nothing.
            let strong = tags.filter { !$0.isWeak }.map { ContentCoding.plainTag($0.opaque) }
            guard !strong.isEmpty else {
                throw Problem(
                    .preconditionFailed, "precondition-failed",
                    "If-Match needs a strong tag: one that begins with W/, as answers to ?pretty have, matches nothing",
                    members: [.string("pointer", pointer.description)])
            }
            return (.init(outer, .tags(.tags(strong)), isHidden: isHidden), nil)
        case nil: throw Problem(.badRequest, "bad-entity-tag", "If-Match must be * or a list of tags in double quotes")
        }
    }

    func idempotencyKey(_ request: Request) throws(Problem) -> String? {
        guard let field = request[.idempotencyKey] else { return nil }
        let bytes = Array(field.utf8)
        var content = bytes[...]
        if bytes.first == UInt8(ascii: "\"") {
            guard let quoted = Self.quoted(bytes) else {
                throw Problem(.badRequest, "bad-idempotency-key", "the quotes around Idempotency-Key do not match")
            }
            content = quoted
        }
        guard (1...255).contains(content.count), content.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw Problem(
                .badRequest, "bad-idempotency-key", "Idempotency-Key must be 1 to 255 printable ASCII characters")
        }
        return String(decoding: content, as: UTF8.self)
    }

    /// The content of a structured-field string (RFC 8941, section 3.3.3); nil for a text that is none.
    private static func quoted(_ field: [UInt8]) -> ArraySlice<UInt8>? {
        guard field.count >= 2, field.last == UInt8(ascii: "\"") else { return nil }
        let text = field[1..<field.count - 1]
        guard text.contains(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else { return text }
        var (content, rest) = ([UInt8](), text)
        while var byte = rest.popFirst() {
            guard byte != UInt8(ascii: "\"") else { return nil }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = rest.popFirst(), #""\"#.utf8.contains(escaped) else { return nil }
                byte = escaped
            }
            content.append(byte)
        }
        return content[...]
    }
}
