internal import StateJSON

/// The order of an entity table as links to the ID before, of which an insertion, a removal or a move changes a few.
struct EntityOrder: Sendable {
    struct Link: Codable {
        var after: String?
    }

    private(set) var keys: [String]

    init(_ ids: JSONValue?) {
        keys = if case .array(let elements)? = ids { elements.map(Self.key) } else { [] }
    }

    private static func key(_ id: JSONValue) -> String {
        if case .string(let text) = id { text } else { String(decoding: id.text, as: UTF8.self) }
    }

    func link(at index: Int) -> JSONValue { ["after": index > 0 ? .string(keys[index - 1]) : .null] }

    /// Applies an operation, whose `tokens` lie behind the pointer to the order; O(n) where it replaces the order.
    ///
    /// A link is nil for an ID that is not there.
    mutating func apply(
        _ operation: String, _ tokens: ArraySlice<String>, _ value: JSONValue?,
        note: (_ key: String, _ before: JSONValue?, _ after: JSONValue?) -> Void
    ) {
        guard let token = tokens.first else { return replace(with: operation == "remove" ? nil : value, note) }
        guard let index = token == "-" ? keys.count : JSONPointer.index(token) else { return }
        if operation != "add", keys.indices.contains(index) {
            let key = keys[index]
            let link = link(at: index)
            if index + 1 < keys.count { note(keys[index + 1], self.link(at: index + 1), link) }
            keys.remove(at: index)
            note(key, link, nil)
        }
        if operation != "remove", let value, index <= keys.count {
            let key = Self.key(value)
            let next = keys.indices.contains(index) ? Optional(link(at: index)) : nil
            keys.insert(key, at: index)
            note(key, nil, link(at: index))
            if let next { note(keys[index + 1], next, link(at: index + 1)) }
        }
    }

    private mutating func replace(with ids: JSONValue?, _ note: (String, JSONValue?, JSONValue?) -> Void) {
        for index in keys.indices { note(keys[index], link(at: index), nil) }
        self = EntityOrder(ids)
        for index in keys.indices { note(keys[index], nil, link(at: index)) }
    }
}
