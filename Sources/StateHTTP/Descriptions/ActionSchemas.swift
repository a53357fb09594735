package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore
internal import Synchronization

struct DomainSchemas: Sendable {
    let payloads: [String: JSONValue]
    let views: [String: JSONValue]
    let addresses: [String: ViewAddress]
    private let parts: [(part: StatePart, schema: JSONValue)]

    init(_ catalogue: Catalogue) {
        payloads = Dictionary(
            uniqueKeysWithValues: catalogue.whole.open.map { ($0.type, SchemaProbe.payloadSchema(of: $0.actionType)) })
        views = catalogue.viewTypes.mapValues(SchemaProbe.schema)
        addresses = catalogue.viewParameters.mapValues(ViewAddress.init)
        parts = catalogue.parts.map { part in
            let schema = part.schema ?? part.valueType.map(SchemaProbe.schema) ?? [:]
            return switch part.kind {
            case .entities: (part, ["type": "object", "additionalProperties": schema])
            case .order: (part, ["type": "array", "items": OpenAPIDocument.reference("schemas", "EntityID")])
            case .field, .value, .members: (part, schema)
            }
        }
    }

    func state(of scope: Scope) -> JSONValue {
        let inside = parts.filter { $0.part.isInside(scope.pointer) }
        return Self.object(
            of: inside.map { part, schema in
                let tokens = part.pointer.tokens[scope.pointer.tokens.count...]
                let place = tokens.reduce("#/components/schemas/State") {
                    $0 + "/properties" + JSONPointer([$1]).description
                }
                return (tokens, schema.openAPISchema(at: place))
            })
    }

    func state(of scope: Scope, in access: Access) -> JSONValue {
        guard let seen = access.parts(of: scope.pointer) else { return state(of: scope) }
        return Self.cut(state(of: scope), to: seen.compactMap { scope.inner($0)?.tokens[...] })
    }

    /// A schema of the parts at some tokens; of a part that it does not declare it says nothing.
    private static func cut(_ schema: JSONValue, to parts: [ArraySlice<String>]) -> JSONValue {
        guard !parts.contains([]) else { return schema }
        guard schema["type"] == "object" else { return [:] }
        var names: [JSONKey] = []
        for name in parts.compactMap({ JSONKey(optional: $0.first) }) where !names.contains(name) { names.append(name) }
        let members = names.map { name in
            let below = parts.filter { JSONKey(optional: $0.first) == name }.map { $0.dropFirst() }
            let member = schema["properties"].members[name.text] ?? schema["additionalProperties"]
            return (name.text, cut(member, to: below))
        }
        let required = schema["required"].elements.filter { element in
            names.contains { element == .string($0.text) }
        }
        let object = JSONValue.of(
            ("type", "object"), ("properties", .of(members)), ("additionalProperties", false),
            ("required", .array(required)))
        // A client that sees parts of a value is not given the whole of it.
        return .of(("anyOf", .array([object, .of(("type", "undefined"))])))
    }

    private static func object(of parts: [(tokens: ArraySlice<String>, schema: JSONValue)]) -> JSONValue {
        if let whole = parts.first(where: { $0.tokens.isEmpty }) { return whole.schema }
        var names: [String] = []
        for case let name? in parts.map(\.tokens.first) where !names.contains(name) { names.append(name) }
        let members = names.map { name in
            let below = parts.filter { $0.tokens.first == name }
            return (name, object(of: below.map { ($0.tokens.dropFirst(), $0.schema) }))
        }
        return .of(
            ("type", "object"), ("properties", .of(members)), ("additionalProperties", false),
            ("required", .array(names.map(JSONValue.string))))
    }
}

/// The catalogue of actions and the OpenAPI description of a store, derived from the domain's types.
struct ActionSchemas {
    private let actions: [(type: String, payload: JSONValue)]
    private let store: VisibleStore
    private let schemas: DomainSchemas
    private let limits: ContractLimits
    private let clientTypes: [UInt8]

    init(_ store: VisibleStore, _ schemas: DomainSchemas, _ limits: ContractLimits, clientTypes: [UInt8] = []) {
        let own = store.restores ? [(type: Commit.restoreType, payload: Self.restore)] : []
        actions = (store.types.compactMap { type in schemas.payloads[type].map { (type, $0) } } + own)
            .sorted { $0.type < $1.type }
        (self.store, self.schemas, self.limits, self.clientTypes) = (store, schemas, limits, clientTypes)
    }

    private static let restore: JSONValue = [
        "type": "object",
        "properties": ["version": ["type": "integer", "minimum": 0], "fork": ["type": "string"]],
        "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
    ]

    var documents: StoreDocuments {
        // To a client that sees parts of the state, its form is not known.
        let state = store.seesWholeState ? schemas.state(of: store.scope) : [:]
        let views = store.views.mapValues { schemas.views[$0] ?? [:] }
        let parameters = store.views.compactMapValues { schemas.addresses[$0]?.schema }
        return StoreDocuments(
            catalogue: Encoded(catalogue),
            openAPI: Encoded(
                OpenAPIDocument(
                    store: store, limits: limits, actions: actions, state: state, views: views, parameters: parameters
                ).text),
            types: Encoded(
                clientTypes
                    + TypeDeclarations(
                        actions: actions, state: schemas.state(of: store.scope, in: store.access), views: views,
                        parameters: parameters
                    ).text))
    }

    /// `{"actions":[{"type","payload":<JSON Schema>}]}`, UTF-8, sorted by type.
    var catalogue: [UInt8] {
        JSONValue.of(("actions", .array(actions.map { .of(("type", .string($0.type)), ("payload", $0.payload)) }))).text
    }
}

struct StoreDocuments: Sendable {
    enum Name { case catalogue, openAPI, types }

    let catalogue: Encoded
    let openAPI: Encoded
    let types: Encoded

    subscript(name: Name) -> Encoded {
        switch name {
        case .catalogue: catalogue
        case .openAPI: openAPI
        case .types: types
        }
    }

    var bytesCount: Int { catalogue.bytesCount + openAPI.bytesCount + types.bytesCount }
}

/// The descriptions that clients have asked for; clients that see the same share them.
final class SharedDocuments: Sendable {
    private struct Key: Hashable {
        var store: String
        var isEverything: Bool
        var restores: Bool
        var dispatched: [String] = []
        var seen: [String] = []
        var views: [String] = []
        /// The parts of the state, which a grant can name by the subject.
        var parts: [JSONPointer]?

        init(_ store: VisibleStore) {
            self.store = store.name
            (isEverything, restores) = (store.access.isUnlimited, store.restores)
            // Nearly every client sees everything, and needs no lists to say so.
            guard !isEverything else { return }
            dispatched = store.types
            seen = store.scope.types.filter(store.sees(type:))
            views = store.views.keys.sorted()
            parts = store.access.parts(of: store.pointer)
        }
    }

    private struct Kept {
        let documents: StoreDocuments
        var lastUse: Int
    }

    private struct State {
        var kept: [Key: Kept] = [:]
        var usesCount = 0

        mutating func use(_ key: Key) -> StoreDocuments? {
            usesCount += 1
            kept[key]?.lastUse = usesCount
            return kept[key]?.documents
        }
    }

    /// About how many bytes are kept; of one description there are some 200 KB, and as many again in other forms.
    private let bytesMax: Int
    private let state = Mutex(State())

    init(bytesMax: Int = 16 << 20) { self.bytesMax = bytesMax }

    func known(of store: VisibleStore) -> StoreDocuments? {
        let key = Key(store)
        return state.withLock { $0.use(key) }
    }

    func documents(of store: VisibleStore, make: (VisibleStore) -> StoreDocuments) -> StoreDocuments {
        let key = Key(store)
        if let known = state.withLock({ $0.use(key) }) { return known }
        let made = make(store)
        return state.withLock { state in
            // Another thread may have made the same meanwhile.
            if let known = state.use(key) { return known }
            state.kept[key] = Kept(documents: made, lastUse: state.usesCount)
            return made
        }
    }

    /// The cost is O(n) in the number of kinds of clients for each that is dropped; the newest stays.
    func trim() {
        state.withLock { state in
            var bytesCount = state.kept.values.reduce(0) { $0 + $1.documents.bytesCount }
            while bytesCount > bytesMax, state.kept.count > 1,
                let oldest = state.kept.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                bytesCount -= oldest.value.documents.bytesCount
                state.kept[oldest.key] = nil
            }
        }
    }
}

/// The descriptions of stores. They are long, so that a thread that serves others makes, indents and compresses none.
extension Contract {
    func document(_ document: StoreDocuments.Name, _ routed: RoutedRequest) throws(Problem) -> Plan {
        if let options = try onlyReads(routed.request) { return .respond(options) }
        let style = try Parameters(routed.target, known: document == .types ? [] : ["pretty"]).style()
        let request = DocumentRequest(
            document: document, store: routed.store, style: style,
            coding: style == .compact ? coding(of: routed.request) : nil, latest: routed.circumstances.latest)
        guard let known = documents.known(of: routed.store)?[document], isReady(known, for: request) else {
            return .document(request)
        }
        return .respond(response(to: request, known))
    }

    private func isReady(_ document: Encoded, for request: DocumentRequest) -> Bool {
        if request.style == .pretty { return document.isIndented }
        return coding(of: document, for: request).map { document.has($0.rawValue) } ?? true
    }

    private func coding(of document: Encoded, for request: DocumentRequest) -> ContentCoding? {
        document.json.count >= limits.compressedBytesMin ? request.coding : nil
    }

    /// The answer with a description of a store.
    ///
    /// It makes the description where no client that sees the same has asked for it, and the form that the request asks for
    /// where no other has: this takes milliseconds. Both are kept.
    package func response(to request: DocumentRequest) -> Response {
        let known = documents.documents(of: request.store) {
            ActionSchemas($0, schemas, limits, clientTypes: clientTypes).documents
        }
        let response = response(to: request, known[request.document])
        documents.trim()
        return response
    }

    private func response(to request: DocumentRequest, _ document: Encoded) -> Response {
        let coding = coding(of: document, for: request)
        var response = Response.json(
            of: request.style == .pretty
                ? document.indented()
                    // Without memory for the coding the answer has no memory either.
                : coding.map { coding in document.form(coding.rawValue) { coding.compressed($0) ?? [] } }
                    ?? document.body,
            latest: request.latest)
        if request.document == .types { response.fields[.contentType] = "text/plain; charset=utf-8" }
        if let coding {
            response.fields[.contentEncoding] = coding.rawValue
            response.fields[.vary] = "Accept-Encoding"
        }
        return response
    }
}
