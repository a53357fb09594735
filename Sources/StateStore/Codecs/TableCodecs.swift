internal import StateJSON

/// The codec of the entities of a table: a JSON object with sorted keys.
struct EntitiesCodec<ID: EntityID, Entity: Codable & Sendable>: PartCodec {
    typealias Table = EntityTable<ID, Entity>
    private let form = TableForm(Table.self)

    func tree(of table: Table, after earlier: JSONTree?, _: JSONEncodingSession) -> JSONTree {
        if let earlier, earlier.entities.root === table.entries.root { return earlier }
        return JSONTree(entities: table.entries, form)
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

    /// The order of the table follows by the operations on its IDs: see ``OrderCodec``.
    func apply(_ operations: [PatchOperation], to table: inout Table, of _: JSONTree) throws -> JSONTree {
        for operation in operations {
            guard let token = operation.tokens.first else {
                guard let value = operation.value else { throw operation.mismatch }
                try read(try PatchOperation.node(value), into: &table)
                continue
            }
            guard let id = ID(token: token) else { throw operation.mismatch }
            let inner = operation.inner
            var value: JSONValue?
            if inner.tokens.isEmpty {
                value = inner.value
                if value == nil, table.entry(id.key) == nil { throw operation.mismatch }
            } else {
                guard let entry = table.entry(id.key) else { throw operation.mismatch }
                var known = try JSONValue(parsing: try entry.bytes(), depthMax: 1000)
                try inner.apply(to: &known)
                value = known
            }
            try table.setOutOfOrder(id, value.map { try PatchOperation.node($0).decode(Entity.self) })
        }
        return JSONTree(entities: table.entries, form)
    }
}

/// The codec of the order of a table: a JSON array of IDs, which is read after the entities.
struct OrderCodec<ID: EntityID, Entity: Codable & Sendable>: PartCodec {
    typealias Table = EntityTable<ID, Entity>
    private let form = TableForm(Table.self)

    func tree(of table: Table, after earlier: JSONTree?, _: JSONEncodingSession) -> JSONTree {
        if let earlier, earlier.order.root === table.order.root { return earlier }
        return JSONTree(order: table.order, form)
    }

    func read(_ node: JSONNode, into table: inout Table) throws(JSONFault) {
        let ids: [ID] = try node.decode()
        guard table.areOwn(ids) else {
            throw JSONFault(.mismatch, at: node.pointer, "expected each entity's ID once")
        }
        table.reorder(ids)
    }

    /// The operations on the entities come first, so that the entities of all IDs are there.
    func apply(_ operations: [PatchOperation], to table: inout Table, of tree: JSONTree) throws -> JSONTree {
        // So is the patch where most of the order has changed.
        if operations.contains(where: { $0.name == "replace" }) {
            var ids = try JSONValue(parsing: try tree.encoded(), depthMax: 1000)
            for operation in operations { try operation.apply(to: &ids) }
            try read(try PatchOperation.node(ids), into: &table)
            return JSONTree(order: table.order, form)
        }
        for operation in operations {
            guard operation.tokens.count == 1, let token = operation.tokens.first,
                let index = token == "-" ? table.order.count : JSONPointer.index(token),
                table.changeOrder(
                    at: index, inserting: try operation.value.map { try PatchOperation.node($0).decode(ID.self) })
            else { throw operation.mismatch }
        }
        guard table.order.count == table.count else {
            throw PatchMismatch(detail: "the order of a table does not have each of its entities once")
        }
        return JSONTree(order: table.order, form)
    }
}

/// The words of a table's tree for its entities and their keys, without their types.
final class TableForm: Sendable {
    /// The key of a token; nil for what is no ID.
    let key: @Sendable (String) -> EntityKey?
    /// The JSON of an entry, which the first call makes.
    let entity: @Sendable (any AnyObject) throws -> [UInt8]
    /// The JSON of the ID of a key that JSON spells in another way than the key; nil where there is none.
    private let id: (@Sendable (EntityKey) throws -> [UInt8])?

    init<ID: EntityID, Entity>(_: EntityTable<ID, Entity>.Type) {
        key = { ID(token: $0)?.key }
        entity = { try EntityTable<ID, Entity>.entry($0).bytes() }
        if ID.self == Int.self || ID.self == String.self {
            id = nil
        } else {
            id = { (key: EntityKey) throws -> [UInt8] in try JSON.encode(EntityTable<ID, Entity>.id(key)) }
        }
    }

    /// Writes the ID of a key.
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

/// A map of a table, as a tree has it.
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
