internal import ContentCodings
package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

/// Requests for the value of a selection.
extension Contract {
    private static let parametersOfViews: Set = ["wait", "until", "debounce", "at-least", "version", "pretty"]
    private static let parametersOfState = parametersOfViews.union(["as", "since"])

    /// Reads a GET of a selection: a read, a stream, or a keyed difference.
    func read(_ selection: Selection, _ routed: RoutedRequest) throws(Problem) -> Plan {
        let (request, target, store) = (routed.request, routed.target, routed.store)
        if let options = try onlyReads(request) { return .respond(options) }
        let parameters: Parameters
        switch selection {
        case .pointer, .hidden: parameters = try Parameters(target, known: Self.parametersOfState)
        case .view: parameters = try Parameters(target, known: Self.parametersOfViews)
        }
        // A tag that is none is refused where no tag counts, too.
        let known = try knownTags(request)
        switch selection {
        case .pointer(let pointer), .hidden(let pointer):
            if try isKeyed(parameters) { return .changes(try difference(at: pointer, routed, parameters)) }
        case .view: break
        }
        guard !parameters.has("since") else {
            throw Problem(
                .badRequest, "bad-parameter", "since goes with as=keyed; without it, If-None-Match says what is known")
        }
        var read = ReadRequest(
            selection: selection, store: store, wait: try wait(parameters, request), style: try parameters.style(),
            coding: coding(of: request), name: routed.circumstances.name)
        if let format = streamFormat(request, offered: [.events]) {
            return .stream(try stream(read, format, request, parameters))
        }
        (read.until, read.debounce) = (try until(parameters), try debounce(parameters))
        guard read.wait != nil || (read.until == nil && read.debounce == nil) else {
            throw Problem(.badRequest, "bad-parameter", "until and debounce go with wait")
        }
        read.known = known
        let latest = routed.circumstances.latest
        let version = try parameters.text("version").map { text throws(Problem) -> Version in
            guard let version: Version = Parameters.wholeNumber(text) else {
                throw Problem(.badRequest, "bad-parameter", "version must be a whole number")
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
            guard !parameters.has("wait"), read.atLeast == nil, read.until == nil else {
                throw Problem(
                    .badRequest, "bad-parameter",
                    "version takes no wait, no until and no at-least: the past never changes")
            }
            guard version <= latest.version else { throw Self.aheadOfLatest(latest) }
            // A preference may be ignored: the past never changes.
            read.wait = nil
            read.version = version
        }
        if let memo = request.head.sectionMemo, Self.plainTokens(of: request.target) != nil {
            memo.store(RememberedReads(read))
        }
        return .read(read)
    }

    /// Reads a GET of a part of the whole state, without parameters and with a header section that has come before; nil for
    /// any other request.
    ///
    /// - Parameter section: what is remembered of the header section.
    package func read(repeating section: RememberedReads, _ request: Request, _ name: RequestName) -> ReadRequest? {
        guard let tokens = Self.plainTokens(of: request.target) else { return nil }
        var read = section.read
        read.selection = read.store.selection(JSONPointer(tokens))
        read.name = name
        return read
    }

    private static let pathOfState: StaticString = "/v1/state/"

    /// What follows `/v1/state/` in a target that names a part of the whole state without escapes and parameters; nil for
    /// another target.
    package static func plainPath(of target: String) -> Substring? {
        let start = pathOfState.utf8CodeUnitCount
        let isPlain = target.withBytes { bytes in
            let prefix = UnsafeBufferPointer(start: pathOfState.utf8Start, count: start)
            guard bytes.count > start, UnsafeBufferPointer(rebasing: bytes[..<start]).hasBytes(of: prefix) else {
                return false
            }
            return !bytes.has(UInt8(ascii: "%")) && !bytes.has(UInt8(ascii: "~")) && !bytes.has(UInt8(ascii: "?"))
        }
        return isPlain ? Substring(target.utf8.dropFirst(start)) : nil
    }

    /// The tokens in a target that is the path of a part of the whole state, without escapes and parameters; nil for another.
    private static func plainTokens(of target: String) -> [String]? {
        guard let path = plainPath(of: target) else { return nil }
        let tokens = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return tokens.count <= tokensMax ? tokens.map { String(Substring($0)) } : nil
    }

    /// The tags of the content that the client has; nil without `If-None-Match`.
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

    /// Whether the client asks for keyed differences.
    func isKeyed(_ parameters: Parameters) throws(Problem) -> Bool {
        switch try parameters.text("as") {
        case nil: return false
        case "keyed"?: return true
        case _?: throw Problem(.badRequest, "bad-parameter", "as can only be keyed")
        }
    }

    /// Reads a GET of the keyed difference of the entities below a pointer.
    private func difference(
        at pointer: JSONPointer, _ routed: RoutedRequest, _ parameters: Parameters
    ) throws(Problem) -> ChangesRequest {
        for name in ["version", "at-least", "until"] where parameters.has(name) {
            throw Problem(.badRequest, "bad-parameter", "as=keyed takes since, wait and debounce, no \(name)")
        }
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
