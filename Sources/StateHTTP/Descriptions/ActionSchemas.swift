internal import StateJSON
internal import StateStore
internal import Synchronization

/// The catalogue of actions and the OpenAPI description of a store, derived from the domain's types.
struct ActionSchemas {
    private let actions: [(type: String, payload: JSONValue)]
    private let store: VisibleStore
    private let limits: ContractLimits

    /// - Parameter schemas: the JSON Schema of the payload of each action type.
    init(_ store: VisibleStore, _ schemas: [String: JSONValue], _ limits: ContractLimits) {
        actions = store.types.compactMap { type in schemas[type].map { (type, $0) } }
        (self.store, self.limits) = (store, limits)
    }

    var documents: StoreDocuments {
        StoreDocuments(
            catalogue: catalogue, openAPI: OpenAPIDocument(store: store, limits: limits, actions: actions).text)
    }

    /// `{"actions":[{"type","payload":<JSON Schema>}]}`, UTF-8, sorted by type.
    var catalogue: [UInt8] {
        JSONValue.of(("actions", .array(actions.map { .of(("type", .string($0.type)), ("payload", $0.payload)) }))).text
    }
}

/// The descriptions of a store, UTF-8 JSON.
struct StoreDocuments: Sendable {
    let catalogue: [UInt8]
    let openAPI: [UInt8]
}

/// The descriptions that clients have asked for; clients that see the same share them.
final class SharedDocuments: Sendable {
    /// What decides about the descriptions of a store.
    private struct Key: Hashable {
        var store: String
        var isEverything: Bool
        var dispatched: [String] = []
        var seen: [String] = []
        var views: [String] = []
        var operates = true
        var backsUp = true

        init(_ store: VisibleStore) {
            self.store = store.name
            isEverything = store.access.isUnlimited && store.access.operates
            // Nearly every client sees everything, and needs no lists to say so.
            guard !isEverything else { return }
            dispatched = store.types
            seen = store.scope.types.filter(store.sees(type:))
            views = store.views.keys.sorted()
            operates = store.access.operates
            backsUp = store.access.backsUp
        }
    }

    /// How many descriptions are kept: of each there are some 200 KB.
    private static let countMax = 64

    private let known = Mutex<[Key: StoreDocuments]>([:])

    /// The descriptions of a store as its client sees it.
    func documents(of store: VisibleStore, make: (VisibleStore) -> StoreDocuments) -> StoreDocuments {
        let key = Key(store)
        if let known = known.withLock({ $0[key] }) { return known }
        let made = make(store)
        known.withLock { known in
            // More kinds of clients than there is room for: each of them is described anew.
            if known.count >= Self.countMax { known.removeAll() }
            known[key] = made
        }
        return made
    }
}
