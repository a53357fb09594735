internal import StateJSON

/// The node for the entities of a table: a JSON object with sorted keys.
struct EntitiesNode<ID: EntityID, Entity: Codable & Sendable>: LayoutNode {
    typealias Table = EntityTable<ID, Entity>
    private let parts = PartEncodings<EntityKey, any AnyObject & Sendable>()

    func write(_ table: Table, to writer: inout JSONWriter) throws {
        writer.byte(UInt8(ascii: "{"))
        try parts.write(table.entries, to: &writer) { key, entry, writer in
            writer.string(key.token)
            writer.byte(UInt8(ascii: ":"))
            writer.raw(try Table.entry(entry).bytes())
        }
        writer.byte(UInt8(ascii: "}"))
    }

    func select(_ table: Table, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        guard let token = tokens.first else { return try whole(table, countMax: countMax) }
        guard let id = ID(token: token), let entry = table.entries[id.key] else { return .nothing }
        let bytes = try Table.entry(entry).bytes()
        return JSONText.select(tokens.dropFirst(), in: bytes).map(SelectedValue.cached) ?? .nothing
    }

    func count(_ table: Table) -> Int { table.count }

    func compare(_ old: Table, _ new: Table, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        try PersistentMap.visitDifferences(old.entries, new.entries) { (key, before, after) throws in
            switch (before, after) {
            case (let before?, let after?) where before !== after:
                let (before, after) = (try Table.entry(before).bytes(), try Table.entry(after).bytes())
                guard before != after else { return }
                patch.descend(key.token) { $0.compare(before, after) }
            case (nil, let after?): patch.add(member: key.token, value: try Table.entry(after).bytes())
            case (_?, nil): patch.remove(member: key.token)
            default: break
            }
        }
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
}

/// The node for the order of a table: a JSON array of IDs, which is read after the entities.
struct OrderNode<ID: EntityID, Entity: Codable & Sendable>: LayoutNode {
    typealias Table = EntityTable<ID, Entity>
    private let parts = PartEncodings<Table.Rank, EntityKey>()

    func write(_ table: Table, to writer: inout JSONWriter) throws {
        writer.byte(UInt8(ascii: "["))
        try parts.write(table.order, to: &writer) { _, key, writer in try JSON.write(Table.id(key), to: &writer) }
        writer.byte(UInt8(ascii: "]"))
    }

    func select(_ table: Table, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        guard let token = tokens.first else { return try whole(table, countMax: countMax) }
        guard let index = JSONPointer.index(token), index < table.count else { return .nothing }
        return JSONText.select(tokens.dropFirst(), in: try JSON.encode(table.id(at: index))).map(SelectedValue.encoded)
            ?? .nothing
    }

    func count(_ table: Table) -> Int { table.count }

    func compare(_ old: Table, _ new: Table, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        var removed: [Int] = []
        var inserted: [(Int, EntityKey)] = []
        PersistentMap.visitDifferences(old.order, new.order) { rank, before, after in
            guard before != after else { return }
            if before != nil { removed.append(old.order.position(of: rank)) }
            if let after { inserted.append((new.order.position(of: rank), after)) }
        }
        guard !removed.isEmpty || !inserted.isEmpty else { return }
        // Where most of the order has changed, one operation that replaces the array is shorter.
        if removed.count + inserted.count > 16, removed.count + inserted.count > new.count / 2 {
            patch.compare(try bytes(old), try bytes(new))
            return
        }
        // Removing from the end and then inserting from the start leaves every other index of the operations valid.
        for position in removed.reversed() { patch.remove(at: position) }
        for (position, key) in inserted { patch.insert(at: position, value: try JSON.encode(Table.id(key))) }
    }

    func read(_ node: JSONNode, into table: inout Table) throws(JSONFault) {
        let ids: [ID] = try node.decode()
        guard table.areOwn(ids) else {
            throw JSONFault(.mismatch, at: node.pointer, "expected each entity's ID once")
        }
        table.reorder(ids)
    }
}
