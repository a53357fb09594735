extension EntityTable: Codable {
    private struct MemberKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private enum Part: String, CodingKey { case entities, ids }

    /// Encodes `{"entities": {...}, "ids": [...]}`.
    public func encode(to encoder: any Encoder) throws {
        var parts = encoder.container(keyedBy: Part.self)
        var members = parts.nestedContainer(keyedBy: MemberKey.self, forKey: .entities)
        try entries.visit { (key, entry) throws in
            try members.encode(Self.entry(entry).entity, forKey: MemberKey(stringValue: key.token))
        }
        try parts.encode(ids, forKey: .ids)
    }

    /// Decodes what ``encode(to:)`` writes.
    ///
    /// - Throws: `DecodingError` when `ids` does not name each entity once.
    public init(from decoder: any Decoder) throws {
        let parts = try decoder.container(keyedBy: Part.self)
        let members = try parts.nestedContainer(keyedBy: MemberKey.self, forKey: .entities)
        for key in members.allKeys {
            guard let id = ID(token: key.stringValue) else {
                throw DecodingError.dataCorruptedError(
                    forKey: key, in: members, debugDescription: "is not the ID of an entity")
            }
            self[id] = try members.decode(Entity.self, forKey: key)
        }
        let ids = try parts.decode([ID].self, forKey: .ids)
        guard areOwn(ids) else {
            throw DecodingError.dataCorruptedError(
                forKey: .ids, in: parts, debugDescription: "does not name each entity once")
        }
        reorder(ids)
    }
}
