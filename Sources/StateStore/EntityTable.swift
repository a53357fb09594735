internal import StateJSON
internal import Synchronization

/// What names an entity: it has one spelling as a key of a JSON object.
public protocol EntityID: Comparable, Codable, Sendable {
    /// The spelling as a JSON key.
    var token: String { get }
    /// Reads a spelling; nil when no ID is spelled so.
    init?(token: String)
    /// Whether one ID stands before another in the table. IDs of which neither does are the same.
    static func precedes(_ left: Self, _ right: Self) -> Bool
}

extension EntityID {
    /// As `<` has it.
    public static func precedes(_ left: Self, _ right: Self) -> Bool { left < right }
}

extension Int: EntityID {
    /// The digits.
    public var token: String { String(self) }
    /// Reads digits as ``token`` writes them: without a plus sign or leading zeros.
    public init?(token: String) {
        self.init(token)
        guard self.token == token else { return nil }
    }
}

extension String: EntityID {
    /// The string itself.
    public var token: String { self }
    /// Takes any string.
    public init?(token: String) { self = token }
    /// By bytes: Swift takes two spellings of one accented letter for the same string, which are two keys in JSON.
    public static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }
}

/// Entities by ID, with the IDs in an order of their own: the normalised table of the Redux family.
///
/// Copies share what they have in common, so the state before a change is kept for nothing, and comparing the two costs
/// what the change touched. Reading, setting, moving or removing one entity is O(log n).
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

    /// An ID as the table sorts it.
    struct Key: Comparable, Sendable {
        let id: ID

        init(_ id: ID) { self.id = id }

        static func < (left: Key, right: Key) -> Bool { ID.precedes(left.id, right.id) }
        static func == (left: Key, right: Key) -> Bool { !(left < right) && !(right < left) }
    }

    private(set) var entries = PersistentMap<Key, Entry>()
    private(set) var order = PersistentMap<Rank, ID>()

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
        get { entries[Key(id)]?.entity }
        set {
            switch (entries[Key(id)], newValue) {
            case (let entry?, let entity?): entries.set(Key(id), Entry(entity, entry.rank))
            case (nil, let entity?): place(Entry(entity, rank(before: count)), id)
            case (let entry?, nil):
                entries.remove(Key(id))
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
        order.visit { ids.append($1) }
        return ids
    }

    /// The ID at a position.
    ///
    /// - Precondition: `0 <= position < count`.
    public func id(at position: Int) -> ID { order[at: position].value }

    /// The position of an ID in the order, or nil when it is not there.
    public func position(of id: ID) -> Int? {
        entries[Key(id)].map { order.position(of: $0.rank) }
    }

    /// Whether there is an entity with this ID.
    public func contains(_ id: ID) -> Bool { entries[Key(id)] != nil }

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
        guard let entry = entries[Key(id)] else { return false }
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
        entries.set(Key(id), entry)
        order.set(entry.rank, id)
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
    func areOwn(_ ids: [ID]) -> Bool { ids.map(Key.init).sorted() == entries.keys }

    /// Gives the entities an order.
    ///
    /// O(n).
    ///
    /// - Precondition: `ids` are the table's own, each once.
    mutating func reorder(_ ids: [ID]) {
        var ranked: [(Rank, ID)] = []
        ranked.reserveCapacity(ids.count)
        for (position, id) in ids.enumerated() { ranked.append((Self.firstRank + Rank(position) * Self.step, id)) }
        order = PersistentMap(sorted: ranked)
        entries = PersistentMap(
            sorted: ranked.sorted { ID.precedes($0.1, $1.1) }.compactMap { rank, id in
                entries[Key(id)].map { (Key(id), Entry($0, rank)) }
            })
    }

    /// Makes a table of entities sorted by ID, in that order.
    ///
    /// O(n).
    init(sorted entities: [(ID, Entity)]) {
        let ranked = entities.enumerated().map { (Self.firstRank + Rank($0) * Self.step, $1.0, $1.1) }
        order = PersistentMap(sorted: ranked.map { ($0.0, $0.1) })
        entries = PersistentMap(sorted: ranked.map { (Key($0.1), Entry($0.2, $0.0)) })
    }
}

extension EntityTable: Sequence {
    /// The entities with their IDs, in order.
    public func makeIterator() -> some IteratorProtocol<(id: ID, entity: Entity)> {
        var elements: [(id: ID, entity: Entity)] = []
        elements.reserveCapacity(count)
        order.visit { _, id in
            if let entry = entries[Key(id)] { elements.append((id, entry.entity)) }
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
        return left.ids == right.ids && left.allSatisfy { right[$0.id] == $0.entity }
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
            try members.encode(entry.entity, forKey: MemberKey(stringValue: key.id.token))
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
