internal import ContentCodings
internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

/// The head of a POST of actions: how the client wants its actions handled.
extension Contract {
    private static let parametersOfActions: Set = ["dry-run", "path", "pretty"]

    /// Reads the head of a POST of actions, once for all requests with the same head.
    func dispatchOptions(_ routed: RoutedRequest) throws(Problem) -> DispatchOptions {
        let (request, store) = (routed.request, routed.store)
        let parameters = try Parameters(routed.target, known: Self.parametersOfActions)
        let purpose: Transaction.Purpose = try parameters.flag("dry-run") ? .dryRun : .commit
        let style = try parameters.style()
        let tagGuard = try tagGuard(request, parameters, store)
        let key = try idempotencyKey(request)
        let form = try form(request)
        return DispatchOptions(
            form: form, store: store, style: style, returning: Preferences(request[values: .prefer]).returning,
            wait: form == .one && purpose == .commit ? preferredWait(request) : nil, tagGuard: tagGuard, key: key,
            purpose: purpose, trace: request.trace?.text)
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
        let parts = given?.split(separator: ";", omittingEmptySubsequences: false).map {
            $0.filter { $0 != " " && $0 != "\t" && $0 != "\"" }.lowercased()
        }
        if let charset = parts?.first(where: { $0.hasPrefix("charset=") }), charset != "charset=utf-8" {
            throw Problem(
                .unsupportedMediaType, "media-type", "actions come in UTF-8",
                fields: [.accept: "application/json, application/x-ndjson"])
        }
        let type = parts?.first
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
        _ request: Request, _ parameters: Parameters, _ store: VisibleStore
    ) throws(Problem) -> Transaction.TagGuard? {
        let path = try parameters.text("path")
        guard let value = request[.ifMatch] else {
            guard path == nil else {
                throw Problem(.badRequest, "bad-parameter", "path says what If-Match guards; there is no If-Match")
            }
            return nil
        }
        guard let pointer = JSONPointer(text: path ?? "") else {
            throw Problem(.badRequest, "bad-parameter", "path must be a JSON Pointer, empty or beginning with /")
        }
        let isHidden = !store.access.sees(store.outer(pointer))
        switch EntityTagCondition(value) {
        case .any?: return .init(store.outer(pointer), .any, isHidden: isHidden)
        case .tags(let tags)?:
            // If-Match compares strongly: a weak tag matches nothing.
            let strong = tags.filter { !$0.isWeak }.map { ContentCoding.plainTag($0.opaque) }
            guard !strong.isEmpty else {
                throw Problem(
                    .preconditionFailed, "precondition-failed",
                    "If-Match needs a strong tag: one that begins with W/, as answers to ?pretty have, matches nothing",
                    members: [.string("pointer", pointer.description)])
            }
            return .init(store.outer(pointer), .tags(strong), isHidden: isHidden)
        case nil: throw Problem(.badRequest, "bad-entity-tag", "If-Match must be * or a list of tags in double quotes")
        }
    }

    private func idempotencyKey(_ request: Request) throws(Problem) -> String? {
        guard let field = request[.idempotencyKey] else { return nil }
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

    /// The content of a structured-field string (RFC 8941, section 3.3.3), in which a backslash escapes a quote or a
    /// backslash.
    private static func unescaped(_ content: Substring) -> String {
        var result = ""
        var isEscaped = false
        for character in content {
            isEscaped = character == "\\" && !isEscaped
            if !isEscaped { result.append(character) }
        }
        return result
    }
}
