package import StateJSON

/// The identity of a transaction from one attempt of its client to the next.
package struct TransactionIdentity: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        case key = 1
        case id = 2
        /// The bytes of the request or of its line, or else the types and payloads of the actions.
        case content = 3
        case view = 4
    }

    package let kind: Kind
    package let hash: ContentHash

    package init(_ kind: Kind, _ hash: ContentHash) { (self.kind, self.hash) = (kind, hash) }

    /// Identifies a transaction; nil for one of which only the turn knows the actions.
    package init?(_ transaction: Transaction) {
        if let idempotency = transaction.idempotency {
            self.init(.key, ContentHash(idempotency.key.recorded))
        } else if let id = transaction.firstID {
            var hash = ContentHash(id)
            for item in transaction.items.dropFirst() { hash = Self.combine(hash, item.id.map { ContentHash($0) }) }
            if let subject = transaction.subject { hash = Self.combine(hash, ContentHash(subject)) }
            self.init(.id, hash)
        } else if let hash = transaction.contentHash ?? Self.contentHash(of: transaction.items) {
            self.init(.content, hash)
        } else {
            return nil
        }
    }

    package init(view name: String, _ arguments: ViewArguments = .none) {
        var hash = ContentHash(name)
        if !arguments.isEmpty {
            hash = Self.combine(hash, ContentHash(arguments.parameters))
            hash = Self.combine(hash, arguments.subject.map { ContentHash($0) })
        }
        self.init(.view, hash)
    }

    /// Nil if the turn alone knows the actions of one of the transactions.
    package init?(_ transactions: [Transaction]) {
        var hash = ContentHash(high: 0, low: 0)
        for transaction in transactions {
            guard let identity = Self(transaction) else { return nil }
            hash = Self.combine(hash, identity.hash)
        }
        self.init(.content, hash)
    }

    private static func combine(_ hash: ContentHash, _ other: ContentHash?) -> ContentHash {
        withUnsafeBytes(of: (hash.high, hash.low, other?.high ?? 0, other?.low ?? 0)) { ContentHash($0) }
    }

    private static func contentHash(of items: [Transaction.Item]) -> ContentHash? {
        var writer = JSONWriter()
        for item in items {
            guard case .action(let action) = item.content else { return nil }
            // Hashes that are kept have no comma here.
            writer.raw("\"type\":")
            writer.string(action.typeName)
            // An action that cannot be encoded has its type.
            try? JSON.write(action, to: &writer)
        }
        return ContentHash(writer.bytes)
    }
}

extension ContentHash {
    init(_ text: String) {
        var text = text
        self = text.withUTF8 { ContentHash(UnsafeRawBufferPointer($0)) }
    }
}
