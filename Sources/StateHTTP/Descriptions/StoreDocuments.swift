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
        views = catalogue.views.compactMapValues(\.valueType).mapValues(SchemaProbe.schema)
        addresses = catalogue.views.compactMapValues(\.parameters).mapValues(ViewAddress.init)
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
        Self.object(
            of: parts.filter { $0.part.isInside(scope.pointer) }.map { part, schema in
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
        let required = schema["required"].elements.filter { element in names.contains { element == .string($0.text) } }
        // A client that sees parts of a value is not given the whole of it.
        return ["anyOf": [object(members, required: required), ["type": "undefined"]]]
    }

    private static func object(_ members: [(String, JSONValue)], required: [JSONValue]) -> JSONValue {
        ["type": "object", "properties": .of(members), "additionalProperties": false, "required": .array(required)]
    }

    private static func object(of parts: [(tokens: ArraySlice<String>, schema: JSONValue)]) -> JSONValue {
        if let whole = parts.first(where: { $0.tokens.isEmpty }) { return whole.schema }
        var names: [String] = []
        for case let name? in parts.map(\.tokens.first) where !names.contains(name) { names.append(name) }
        let members = names.map { name in
            let below = parts.filter { $0.tokens.first == name }
            return (name, object(of: below.map { ($0.tokens.dropFirst(), $0.schema) }))
        }
        return object(members, required: names.map(JSONValue.string))
    }
}

struct StoreDocuments: Sendable {
    typealias Name = any KeyPath<StoreDocuments, Encoded> & Sendable

    let catalogue: Encoded
    let openAPI: Encoded
    let types: Encoded
    var bytesCount: Int { catalogue.bytesCount + openAPI.bytesCount + types.bytesCount }
}

/// The descriptions that clients have asked for; clients with equal grants share them.
final class SharedDocuments: Sendable {
    private struct Key: Equatable {
        let store: String
        let restores: Bool
        /// The parts of the state, which a grant can name by the subject: most keys differ here, and are compared in this order.
        let parts: [JSONPointer]?
        let read: [ExactText]
        let dispatched: [ExactText]

        init(_ store: VisibleStore) {
            let grant = store.access.grant
            (self.store, restores, parts) = (store.name, store.restores, store.access.parts(of: store.pointer))
            (read, dispatched) = (grant.read.map { ExactText($0) }, grant.dispatch.map { ExactText($0) })
        }
    }

    /// About how many bytes are kept; of one description there are some 200 KB, and as many again in other forms.
    private let bytesMax: Int
    /// In the order of their last use.
    private let kept = Mutex<[(key: Key, documents: StoreDocuments)]>([])

    init(bytesMax: Int = 16 << 20) { self.bytesMax = bytesMax }

    func known(of store: VisibleStore) -> StoreDocuments? { known(Key(store)) }

    private func known(_ key: Key, orKeep made: StoreDocuments? = nil) -> StoreDocuments? {
        kept.withLock { kept in
            if let index = kept.firstIndex(where: { $0.key == key }) {
                kept.append(kept.remove(at: index))
            } else if let made {
                kept.append((key, made))
            } else {
                return nil
            }
            return kept.last?.documents
        }
    }

    func documents(of store: VisibleStore, make: (VisibleStore) -> StoreDocuments) -> StoreDocuments {
        let key = Key(store)
        if let known = known(key) { return known }
        let made = make(store)
        // Another thread may have made the same meanwhile.
        return known(key, orKeep: made) ?? made
    }

    func trim() {
        kept.withLock { kept in
            var bytesCount = kept.reduce(0) { $0 + $1.documents.bytesCount }
            while bytesCount > bytesMax, kept.count > 1 { bytesCount -= kept.removeFirst().documents.bytesCount }
        }
    }
}

/// The descriptions of stores. They are long, so that a thread that serves others makes, indents and compresses none.
extension Contract {
    func document(_ document: StoreDocuments.Name, _ routed: RoutedRequest) throws(Problem) -> Plan {
        if let options = try onlyReads(routed.request) { return .respond(options) }
        let style = try Parameters(routed.target, known: document == \.types ? [] : ["pretty"]).style()
        let request = DocumentRequest(
            document: document, store: routed.store, style: style,
            coding: style == .compact ? coding(of: routed.request) : nil, latest: routed.circumstances.latest)
        guard let known = documents.known(of: routed.store)?[keyPath: document], isReady(known, for: request) else {
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

    /// Makes the description, or the form that the request asks for, unless it is kept; this takes milliseconds.
    package func response(to request: DocumentRequest) -> Response {
        let known = documents.documents(of: request.store, make: makeDocuments)
        let response = response(to: request, known[keyPath: request.document])
        documents.trim()
        return response
    }

    private static let restore: JSONValue = [
        "type": "object", "properties": ["version": ["type": "integer", "minimum": 0], "fork": ["type": "string"]],
        "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
    ]

    func makeDocuments(of store: VisibleStore) -> StoreDocuments {
        let own = store.restores ? [(type: Commit.restoreType, payload: Self.restore)] : []
        let actions = (store.types.compactMap { type in schemas.payloads[type].map { (type, $0) } } + own)
            .sorted { $0.type < $1.type }
        // To a client that sees parts of the state, its form is not known.
        let state = store.access.sees(store.pointer) ? schemas.state(of: store.scope) : [:]
        let views = store.views.mapValues { schemas.views[$0] ?? [:] }
        let parameters = store.views.compactMapValues { schemas.addresses[$0]?.schema }
        let catalogue: JSONValue = [
            "actions": .array(actions.map { ["type": .string($0.type), "payload": $0.payload] })
        ]
        let openAPI = OpenAPIDocument(
            store: store, limits: limits, actions: actions, state: state, views: views, parameters: parameters)
        let types = TypeDeclarations(
            actions: actions, state: schemas.state(of: store.scope, in: store.access), views: views,
            parameters: parameters)
        return StoreDocuments(
            catalogue: Encoded(catalogue.text), openAPI: Encoded(openAPI.text), types: Encoded(clientTypes + types.text)
        )
    }

    private func response(to request: DocumentRequest, _ document: Encoded) -> Response {
        let coding = coding(of: document, for: request)
        var response = Response.json(
            of: request.style == .pretty
                ? document.indented()
                    // Without memory for the coding the answer has no memory either.
                : coding.map { coding in document.form(coding.rawValue) { coding.compressed($0) ?? [] } }
                    ?? document.body, latest: request.latest)
        if request.document == \.types { response.fields[.contentType] = "text/plain; charset=utf-8" }
        if let coding {
            response.fields[.contentEncoding] = coding.rawValue
            response.fields[.vary] = "Accept-Encoding"
        }
        return response
    }
}
