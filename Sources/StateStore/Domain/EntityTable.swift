internal import StateJSON
internal import Synchronization

/// Entities by ID, with the IDs in an order: the normalised table of the Redux family.
///
/// Two copies share the entities that they have in common. Keeping the table before a change costs nothing, and comparing
/// it with the changed one costs O(k log n) for k changes. Reading, setting, moving or removing one entity is O(log n).
///
/// In JSON a table has two parts, `entities` (an object with sorted keys) and `ids` (an array in order). Where a domain
/// declares the table with ``Entities``, each part is a member of the slice. Inside a state that is only `Codable`, the
/// table is one object with both parts, and each commit costs O(n) in the size of the table.
public struct EntityTable<ID: EntityID, Entity: Codable & Sendable>: Sendable {
    /// An entry is an object, so that a comparison of two tables skips the entries that they share.
    final class Entry: Sendable {
        /// The entity's JSON after the first call of ``bytes()``, which each commit makes; nil before it.
        ///
        /// It comes first, next to the count of the references: a reader that no cache knows the entry to waits once.
        private let known: Mutex<[UInt8]?>
        let rank: Rank
        let entity: Entity

        init(_ entity: Entity, _ rank: Rank) {
            self.entity = entity
            self.rank = rank
            known = Mutex(nil)
        }

        init(_ other: Entry, _ rank: Rank) {
            entity = other.entity
            self.rank = rank
            known = Mutex(other.known.withLock { $0 })
        }

        func bytes() throws -> [UInt8] {
            if let bytes = known.withLock({ $0 }) { return bytes }
            let bytes = try JSON.encode(entity)
            known.withLock { $0 = bytes }
            return bytes
        }
    }

    typealias Rank = Ranks.Rank

    /// The values have no entity type, so that all tables share one specialization of the map.
    private(set) var entries = PersistentMap<EntityKey, any AnyObject & Sendable>()
    private(set) var order = PersistentMap<Rank, EntityKey>()

    static func entry(_ object: any AnyObject) -> Entry { unsafeDowncast(object, to: Entry.self) }

    func entry(_ key: EntityKey) -> Entry? { entries[key].map(Self.entry) }

    static func id(_ key: EntityKey) -> ID {
        guard let id = ID(key: key) else { preconditionFailure("\(ID.self) does not know its own key \(key)") }
        return id
    }

    /// Makes an empty table.
    public init() {}

    /// How many entities the table has.
    public var count: Int { entries.count }

    /// Whether the table has no entity.
    public var isEmpty: Bool { entries.isEmpty }

    /// The entity of an ID.
    ///
    /// Setting a new ID appends it to the order; setting nil removes it.
    public subscript(id: ID) -> Entity? {
        get { entry(id.key)?.entity }
        set {
            switch (entry(id.key), newValue) {
            case (let entry?, let entity?): entries.set(id.key, Entry(entity, entry.rank))
            case (nil, let entity?): add(Entry(entity, rank(before: count)), id)
            case (let entry?, nil):
                entries.remove(id.key)
                order.remove(entry.rank)
            case (nil, nil): break
            }
        }
    }

    /// The IDs in order.
    ///
    /// The cost is O(n).
    public var ids: [ID] { order.map { Self.id($1) } }

    /// The ID at a position in the order, counted from 0.
    ///
    /// - Precondition: `0 <= position < count`.
    public func id(at position: Int) -> ID { Self.id(order[at: position].value) }

    /// The position of an ID in the order, counted from 0; nil when the table does not have the ID.
    public func position(of id: ID) -> Int? {
        entry(id.key).map { order.position(of: $0.rank) }
    }

    /// Whether the table has an entity with this ID.
    public func contains(_ id: ID) -> Bool { entries[id.key] != nil }

    /// Inserts an entity before a position; a position outside the table means its nearest end.
    ///
    /// Where the table has the ID already, the new entity replaces the old one and moves to the position.
    public mutating func insert(_ entity: Entity, id: ID, at position: Int) {
        self[id] = nil
        add(Entry(entity, rank(before: position)), id)
    }

    /// Moves an entity to a position; a position outside the table means its nearest end.
    ///
    /// - Returns: false when the table does not have the ID.
    @discardableResult
    public mutating func move(_ id: ID, to position: Int) -> Bool {
        guard let entry = entry(id.key) else { return false }
        guard order.position(of: entry.rank) != Swift.min(Swift.max(position, 0), count - 1) else { return true }
        order.remove(entry.rank)
        add(Entry(entry, rank(before: position)), id)
        return true
    }

    /// Changes an entity without moving it.
    ///
    /// - Returns: false, without a call, when the table does not have the ID.
    /// - Throws: the error of `change`; the table is then unchanged.
    @discardableResult
    public mutating func update<Failure: Error>(
        _ id: ID, _ change: (inout Entity) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        guard var entity = self[id] else { return false }
        try change(&entity)
        self[id] = entity
        return true
    }

    /// Takes the entities that a patch has made of those of the table; their order follows.
    mutating func take(_ entries: PersistentMap<EntityKey, any AnyObject & Sendable>) { self.entries = entries }

    /// The cost is that of the differences; false where the order does not have each entity once.
    mutating func take(_ order: PersistentMap<Rank, EntityKey>) -> Bool {
        var isWhole = order.count == entries.count
        PersistentMap.visitDifferences(self.order, order) { rank, _, key in
            guard let key else { return }
            guard let entry = entry(key), entry.rank == rank || order[entry.rank] != key else { return isWhole = false }
            if entry.rank != rank { entries.set(key, Entry(entry, rank)) }
        }
        self.order = order
        return isWhole
    }

    private mutating func add(_ entry: Entry, _ id: ID) {
        entries.set(id.key, entry)
        order.set(entry.rank, id.key)
    }

    private mutating func rank(before position: Int) -> Rank {
        while true {
            if let rank = order.freeRank(before: position) { return rank }
            let moved = order.spread(around: position)
            for (old, _, _) in moved { order.remove(old) }
            for (_, rank, key) in moved {
                guard let entry = entry(key) else { continue }
                order.set(rank, key)
                entries.set(key, Entry(entry, rank))
            }
        }
    }

    /// The cost is O(n log n).
    func areOwn(_ ids: [ID]) -> Bool { ids.map(\.key).sorted() == entries.map { key, _ in key } }

    /// The cost is O(n log n); `ids` are the table's own, each once.
    mutating func reorder(_ ids: [ID]) {
        var ranked: [(Rank, EntityKey)] = []
        ranked.reserveCapacity(ids.count)
        for (position, id) in ids.enumerated() { ranked.append((Ranks.appended(position), id.key)) }
        order = PersistentMap(sorted: ranked)
        entries = PersistentMap(
            sorted: ranked.sorted { $0.1 < $1.1 }.compactMap { rank, key in
                entry(key).map { (key, Entry($0, rank)) }
            })
    }

    /// The cost is O(n).
    init(sorted entities: [(ID, Entity)]) {
        let ranked = entities.enumerated().map { (Ranks.appended($0), $1.0.key, $1.1) }
        order = PersistentMap(sorted: ranked.map { ($0.0, $0.1) })
        entries = PersistentMap(sorted: ranked.map { ($0.1, Entry($0.2, $0.0)) })
    }
}

extension EntityTable: Sequence {
    /// Iterates over the entities with their IDs, in order.
    ///
    /// The cost is O(n) at the call, which copies the references.
    public func makeIterator() -> some IteratorProtocol<(id: ID, entity: Entity)> {
        ids.compactMap { id in self[id].map { (id: id, entity: $0) } }.makeIterator()
    }
}

extension EntityTable: Equatable where Entity: Equatable {
    /// Whether two tables have equal entities in the same order.
    ///
    /// The cost is O(n log n); it is O(1) for a copy without changes.
    public static func == (left: EntityTable, right: EntityTable) -> Bool {
        guard left.count == right.count else { return false }
        if left.entries.root === right.entries.root, left.order.root === right.order.root { return true }
        return left.ids.map(\.key) == right.ids.map(\.key) && left.allSatisfy { right[$0.id] == $0.entity }
    }
}

extension EntityTable: Codable {
    private enum Part: String, CodingKey { case entities, ids }

    /// Encodes `{"entities": {...}, "ids": [...]}`.
    public func encode(to encoder: any Encoder) throws {
        var parts = encoder.container(keyedBy: Part.self)
        var members = parts.nestedContainer(keyedBy: JSONCodingKey.self, forKey: .entities)
        try entries.visit { (key, entry) throws in
            try members.encode(Self.entry(entry).entity, forKey: JSONCodingKey(stringValue: key.token))
        }
        try parts.encode(ids, forKey: .ids)
    }

    /// Decodes what ``encode(to:)`` writes.
    ///
    /// - Throws: `DecodingError` when `ids` does not name each entity once.
    public init(from decoder: any Decoder) throws {
        let parts = try decoder.container(keyedBy: Part.self)
        let members = try parts.nestedContainer(keyedBy: JSONCodingKey.self, forKey: .entities)
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
