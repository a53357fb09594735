internal import StateJSON

struct EntitiesCodec<ID: EntityID, Entity: Codable & Sendable>: PartCodec {
    typealias Table = EntityTable<ID, Entity>
    private let form = TableForm(Table.self)

    func tree(of table: Table, after earlier: JSONTree?, _: JSONEncodingSession) -> JSONTree {
        if case .entities(let known)? = earlier?.shape, known.map.root === table.entries.root, let earlier {
            return earlier
        }
        return JSONTree(.entities(TableTree(table.entries, form)))
    }

    func read(_ node: JSONNode, into table: inout Table) throws(JSONFault) {
        guard let members = node.members else { throw JSONFault(.mismatch, at: node.pointer, "expected an object") }
        var entities: [(ID, Entity)] = []
        for (key, value) in members {
            guard let id = ID(token: key) else {
                throw JSONFault(.mismatch, at: value.pointer, "the key is not the ID of an entity")
            }
            entities.append((id, try value.decode(Entity.self)))
        }
        table = EntityTable(sorted: entities.sorted { $0.0.key < $1.0.key })
    }

    func read(_ tree: JSONTree, after _: JSONTree, into table: inout Table) throws -> JSONTree {
        guard case .entities(let entities) = tree.shape else { return try readAll(tree, into: &table) }
        table.take(entities.map)
        return tree
    }
}

/// The codec of the order of a table: a JSON array of IDs, which is read after the entities.
struct OrderCodec<ID: EntityID, Entity: Codable & Sendable>: PartCodec {
    typealias Table = EntityTable<ID, Entity>
    private let form = TableForm(Table.self)

    func tree(of table: Table, after earlier: JSONTree?, _: JSONEncodingSession) -> JSONTree {
        if case .order(let known)? = earlier?.shape, known.map.root === table.order.root, let earlier { return earlier }
        return JSONTree(.order(TableTree(table.order, form)))
    }

    func read(_ node: JSONNode, into table: inout Table) throws(JSONFault) {
        let ids: [ID] = try node.decode()
        guard table.areOwn(ids) else {
            throw JSONFault(.mismatch, at: node.pointer, "expected each entity's ID once")
        }
        table.reorder(ids)
    }

    /// The entities come first, so that those of all IDs are there.
    func read(_ tree: JSONTree, after _: JSONTree, into table: inout Table) throws -> JSONTree {
        guard case .order(let order) = tree.shape else { return try readAll(tree, into: &table) }
        guard table.take(order.map) else {
            throw PatchMismatch(detail: "the order of a table does not have each of its entities once")
        }
        return tree
    }
}

/// The words of a table's tree for its entities and their keys, without their types.
final class TableForm: Sendable {
    /// Nil for what is no ID.
    let key: @Sendable (String) -> EntityKey?
    let entity: @Sendable (any AnyObject) throws -> [UInt8]
    /// The second argument is an earlier entry, whose place in the order the new one takes.
    let entry: @Sendable (JSONValue, (any AnyObject)?) throws -> any AnyObject & Sendable
    let keyOfID: @Sendable (JSONValue) throws -> EntityKey
    /// Nil where JSON spells the ID of a key as the key.
    private let id: (@Sendable (EntityKey) throws -> [UInt8])?

    init<ID: EntityID, Entity>(_: EntityTable<ID, Entity>.Type) {
        key = { ID(token: $0)?.key }
        entity = { try EntityTable<ID, Entity>.entry($0).bytes() }
        entry = { value, earlier in
            // The rank of a new entity comes with its place in the order.
            let rank = earlier.map(EntityTable<ID, Entity>.entry)?.rank ?? 0
            return EntityTable<ID, Entity>.Entry(try JSON.decode(from: value.text, depthMax: 1000), rank)
        }
        keyOfID = { try JSON.decode(ID.self, from: $0.text).key }
        if ID.self == Int.self || ID.self == String.self {
            id = nil
        } else {
            id = { (key: EntityKey) throws -> [UInt8] in try JSON.encode(EntityTable<ID, Entity>.id(key)) }
        }
    }

    func write(_ key: EntityKey, to writer: inout JSONWriter) throws {
        if let id { return writer.raw(try id(key)) }
        switch key {
        case .number(let number): writer.integer(number)
        case .text(let text): writer.string(text)
        }
    }

    func text(of key: EntityKey) throws -> [UInt8] {
        var writer = JSONWriter()
        try write(key, to: &writer)
        return writer.bytes
    }
}

final class TableTree<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    let map: PersistentMap<Key, Value>
    let form: TableForm

    init(_ map: PersistentMap<Key, Value>, _ form: TableForm) { (self.map, self.form) = (map, form) }
}

extension JSONTree {
    static func compare(
        _ old: TableTree<EntityKey, any AnyObject & Sendable>, _ new: TableTree<EntityKey, any AnyObject & Sendable>,
        into patch: inout JSONPatch
    ) throws {
        try PersistentMap.visitDifferences(old.map, new.map) { (key, before, after) throws in
            guard before !== after else { return }
            switch (try before.map(old.form.entity), try after.map(new.form.entity)) {
            case (let before?, let after?): patch.descend(key.token) { $0.compare(before, after) }
            case (nil, let after?): patch.add(member: key.token, value: after)
            case (let before?, nil): patch.remove(member: key.token, before.count)
            case (nil, nil): break
            }
        }
    }

    static func compare(
        _ old: TableTree<Ranks.Rank, EntityKey>, _ new: TableTree<Ranks.Rank, EntityKey>, into patch: inout JSONPatch
    ) throws {
        var removed: [(Int, EntityKey)] = []
        var inserted: [(Int, EntityKey)] = []
        PersistentMap.visitDifferences(old.map, new.map) { rank, before, after in
            guard before != after else { return }
            if let before { removed.append((old.map.position(of: rank), before)) }
            if let after { inserted.append((new.map.position(of: rank), after)) }
        }
        // Where most of the order has changed, one operation that replaces the array is shorter.
        if removed.count + inserted.count > 16, removed.count + inserted.count > new.map.count / 2 {
            return patch.compare(try JSONTree(.order(old)).encoded(), try JSONTree(.order(new)).encoded())
        }
        // Removing from the end and then inserting from the start leaves every other index of the operations valid.
        for (position, key) in removed.reversed() { patch.remove(at: position, try old.form.text(of: key).count) }
        for (position, key) in inserted { patch.insert(at: position, value: try new.form.text(of: key)) }
    }
}
