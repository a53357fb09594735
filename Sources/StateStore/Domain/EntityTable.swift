internal import StateJSON
internal import Synchronization

/// Entities by ID, with the IDs in an order of their own: the normalised table of the Redux family.
///
/// Copies share what they have in common, so the state before a change is kept for nothing, and comparing the two costs
/// what the change changedPointers. Reading, setting, moving or removing one entity is O(log n).
///
/// In JSON it is two things, `entities` (an object, keys sorted) and `ids` (an array, in order). Declared with
/// ``Entities`` each is a member of its slice. In a state that is not declared but `Codable` it becomes one object with
/// both, and costs its whole size at each commit.
public struct EntityTable<ID: EntityID, Entity: Codable & Sendable>: Sendable {
    /// An entity and its place in the order.
    ///
    /// An object, so that two tables can be told apart without looking inside.
    final class Entry: Sendable {
        let entity: Entity
        let rank: Rank
        /// The entity's JSON once somebody has asked for it.
        ///
        /// A commit does, so that reading a table joins texts.
        private let known: Mutex<[UInt8]?>

        init(_ entity: Entity, _ rank: Rank) {
            self.entity = entity
            self.rank = rank
            known = Mutex(nil)
        }

        /// The same entity at another place.
        init(_ other: Entry, _ rank: Rank) {
            entity = other.entity
            self.rank = rank
            known = Mutex(other.known.withLock { $0 })
        }

        /// The entity's JSON.
        func text() throws -> [UInt8] {
            if let text = known.withLock({ $0 }) { return text }
            let text = try JSON.encode(entity)
            known.withLock { $0 = text }
            return text
        }
    }

    /// A place in the order: entities are sorted by it.
    ///
    /// There is room for 64 halvings between two appended neighbours.
    typealias Rank = UInt128
    private static var firstRank: Rank { 1 << 127 }
    private static var step: Rank { 1 << 64 }

    /// The entries by key.
    ///
    /// Kept as plain objects: a map whose types are the same for every table is compiled once and for them alone.
    private(set) var entries = PersistentMap<EntityKey, any AnyObject & Sendable>()
    private(set) var order = PersistentMap<Rank, EntityKey>()

    /// An entry that this table has put into its map.
    static func entry(_ object: any AnyObject) -> Entry { unsafeDowncast(object, to: Entry.self) }

    func entry(_ key: EntityKey) -> Entry? { entries[key].map(Self.entry) }

    /// The ID of a key in this table.
    static func id(_ key: EntityKey) -> ID {
        guard let id = ID(key: key) else { preconditionFailure("\(ID.self) does not know its own key \(key)") }
        return id
    }

    /// Makes an empty table.
    public init() {}

    /// How many entities there are.
    public var count: Int { entries.count }

    /// Whether there is none.
    public var isEmpty: Bool { entries.isEmpty }

    /// The entity of an ID.
    ///
    /// Setting a new ID appends it to the order; setting nil removes it.
    public subscript(id: ID) -> Entity? {
        get { entry(id.key)?.entity }
        set {
            switch (entry(id.key), newValue) {
            case (let entry?, let entity?): entries.set(id.key, Entry(entity, entry.rank))
            case (nil, let entity?): place(Entry(entity, rank(before: count)), id)
            case (let entry?, nil):
                entries.remove(id.key)
                order.remove(entry.rank)
            case (nil, nil): break
            }
        }
    }

    /// The IDs in order.
    ///
    /// O(n).
    public var ids: [ID] {
        var ids: [ID] = []
        ids.reserveCapacity(count)
        order.visit { ids.append(Self.id($1)) }
        return ids
    }

    /// The ID at a position.
    ///
    /// - Precondition: `0 <= position < count`.
    public func id(at position: Int) -> ID { Self.id(order[at: position].value) }

    /// The position of an ID in the order, or nil when it is not there.
    public func position(of id: ID) -> Int? {
        entry(id.key).map { order.position(of: $0.rank) }
    }

    /// Whether there is an entity with this ID.
    public func contains(_ id: ID) -> Bool { entries[id.key] != nil }

    /// Inserts an entity before a position; positions outside the table mean its ends.
    ///
    /// An ID that is there already gets the entity and moves.
    public mutating func insert(_ entity: Entity, id: ID, at position: Int) {
        self[id] = nil
        place(Entry(entity, rank(before: position)), id)
    }

    /// Moves an entity so that it ends up at a position; positions outside the table mean its ends.
    ///
    /// - Returns: false when there is no such entity.
    @discardableResult
    public mutating func move(_ id: ID, to position: Int) -> Bool {
        guard let entry = entry(id.key) else { return false }
        guard order.position(of: entry.rank) != Swift.min(Swift.max(position, 0), count - 1) else { return true }
        order.remove(entry.rank)
        place(Entry(entry, rank(before: position)), id)
        return true
    }

    /// Changes an entity in place.
    ///
    /// - Returns: false, without a call, when there is no such entity.
    @discardableResult
    public mutating func update<Failure: Error>(
        _ id: ID, _ change: (inout Entity) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        guard var entity = self[id] else { return false }
        try change(&entity)
        self[id] = entity
        return true
    }

    private mutating func place(_ entry: Entry, _ id: ID) {
        entries.set(id.key, entry)
        order.set(entry.rank, id.key)
    }

    /// A free rank between the neighbours of a position.
    ///
    /// Where there is no room left, every rank is set anew: O(n), but only after 64 insertions at one place.
    private mutating func rank(before position: Int) -> Rank {
        guard let last = order.last, let first = order.first else { return Self.firstRank }
        if position >= order.count { return last.key + Self.step }
        if position <= 0 { return first.key - Self.step }
        let (below, above) = (order[at: position - 1].key, order[at: position].key)
        if above - below < 2 {
            reorder(ids)
            return rank(before: position)
        }
        return below + (above - below) / 2
    }

    /// Whether these are the table's IDs, each once.
    ///
    /// O(n log n).
    func areOwn(_ ids: [ID]) -> Bool { ids.map(\.key).sorted() == entries.keys }

    /// Gives the entities an order.
    ///
    /// O(n).
    ///
    /// - Precondition: `ids` are the table's own, each once.
    mutating func reorder(_ ids: [ID]) {
        var ranked: [(Rank, EntityKey)] = []
        ranked.reserveCapacity(ids.count)
        for (position, id) in ids.enumerated() { ranked.append((Self.firstRank + Rank(position) * Self.step, id.key)) }
        order = PersistentMap(sorted: ranked)
        entries = PersistentMap(
            sorted: ranked.sorted { $0.1 < $1.1 }.compactMap { rank, key in
                entry(key).map { (key, Entry($0, rank)) }
            })
    }

    /// Makes a table of entities sorted by ID, in that order.
    ///
    /// O(n).
    init(sorted entities: [(ID, Entity)]) {
        let ranked = entities.enumerated().map { (Self.firstRank + Rank($0) * Self.step, $1.0.key, $1.1) }
        order = PersistentMap(sorted: ranked.map { ($0.0, $0.1) })
        entries = PersistentMap(sorted: ranked.map { ($0.1, Entry($0.2, $0.0)) })
    }
}

extension EntityTable: Sequence {
    /// The entities with their IDs, in order.
    public func makeIterator() -> some IteratorProtocol<(id: ID, entity: Entity)> {
        var elements: [(id: ID, entity: Entity)] = []
        elements.reserveCapacity(count)
        order.visit { _, key in
            if let entry = entry(key) { elements.append((Self.id(key), entry.entity)) }
        }
        return elements.makeIterator()
    }
}

extension EntityTable: Equatable where Entity: Equatable {
    /// Whether two tables have equal entities in the same order.
    ///
    /// O(n), less where they share structure.
    public static func == (left: EntityTable, right: EntityTable) -> Bool {
        guard left.count == right.count else { return false }
        if left.entries.root === right.entries.root, left.order.root === right.order.root { return true }
        return left.ids.map(\.key) == right.ids.map(\.key) && left.allSatisfy { right[$0.id] == $0.entity }
    }
}

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

extension PersistentMap {
    /// The keys, sorted.
    ///
    /// O(n).
    var keys: [Key] {
        var keys: [Key] = []
        keys.reserveCapacity(count)
        visit { key, _ in keys.append(key) }
        return keys
    }
}
