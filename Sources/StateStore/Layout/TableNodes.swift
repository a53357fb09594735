internal import StateJSON

/// The node for the entities of a table: a JSON object with sorted keys.
struct EntitiesNode<ID: EntityID, Entity: Codable & Sendable>: LayoutNode {
    typealias Table = EntityTable<ID, Entity>
    private let parts = PartEncodings<EntityKey, any AnyObject & Sendable>()

    func write(_ table: Table, to writer: inout JSONWriter) throws {
        writer.byte(UInt8(ascii: "{"))
        try parts.write(table.entries, to: &writer, Self.write)
        writer.byte(UInt8(ascii: "}"))
    }

    private static func write(_ key: EntityKey, _ entry: any AnyObject & Sendable, to writer: inout JSONWriter) throws {
        writer.string(key.token)
        writer.byte(UInt8(ascii: ":"))
        writer.raw(try Table.entry(entry).bytes())
    }

    func select(_ table: Table, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        guard let token = tokens.first else { return try whole(table, countMax: countMax) }
        guard let id = ID(token: token), let entry = table.entries[id.key] else { return .nothing }
        let bytes = try Table.entry(entry).bytes()
        return JSONText.select(tokens.dropFirst(), in: bytes).map(SelectedValue.cached) ?? .nothing
    }

    func memberOrder(_ tokens: ArraySlice<String>) -> MemberOrder? {
        guard tokens.isEmpty else { return nil }
        return { @Sendable token in ID(token: token)?.key }
    }

    func visitTexts(_ table: Table, _ tokens: ArraySlice<String>, _ take: ([UInt8]) throws -> Void) throws {
        guard tokens.isEmpty else {
            if let bytes = try select(table, tokens) { try take(bytes) }
            return
        }
        try parts.visitTexts(table.entries, take, Self.write)
    }

    func count(_ table: Table) -> Int { table.count }

    func compare(_ old: Table, _ new: Table, into patch: inout JSONPatch) throws {
        try PersistentMap.visitDifferences(old.entries, new.entries) { (key, before, after) throws in
            switch (before, after) {
            case (let before?, let after?) where before !== after:
                let (before, after) = (try Table.entry(before).bytes(), try Table.entry(after).bytes())
                guard before != after else { return }
                patch.descend(key.token) { $0.compare(before, after) }
            case (nil, let after?): patch.add(member: key.token, value: try Table.entry(after).bytes())
            case (let before?, nil): patch.remove(member: key.token, try Table.entry(before).bytes().count)
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

    /// The order of the table follows by the operations on its IDs: see ``OrderNode``.
    func apply(_ operations: [PatchOperation], to table: inout Table) throws {
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

    func compare(_ old: Table, _ new: Table, into patch: inout JSONPatch) throws {
        var removed: [(Int, EntityKey)] = []
        var inserted: [(Int, EntityKey)] = []
        PersistentMap.visitDifferences(old.order, new.order) { rank, before, after in
            guard before != after else { return }
            if let before { removed.append((old.order.position(of: rank), before)) }
            if let after { inserted.append((new.order.position(of: rank), after)) }
        }
        guard !removed.isEmpty || !inserted.isEmpty else { return }
        // Where most of the order has changed, one operation that replaces the array is shorter.
        if removed.count + inserted.count > 16, removed.count + inserted.count > new.count / 2 {
            patch.compare(try bytes(old), try bytes(new))
            return
        }
        // Removing from the end and then inserting from the start leaves every other index of the operations valid.
        for (position, key) in removed.reversed() {
            patch.remove(at: position, try JSON.encode(Table.id(key)).count)
        }
        for (position, key) in inserted { patch.insert(at: position, value: try JSON.encode(Table.id(key))) }
    }

    func read(_ node: JSONNode, into table: inout Table) throws(JSONFault) {
        let ids: [ID] = try node.decode()
        guard table.areOwn(ids) else {
            throw JSONFault(.mismatch, at: node.pointer, "expected each entity's ID once")
        }
        table.reorder(ids)
    }

    /// The operations on the entities come first, so that the entities of all IDs are there.
    func apply(_ operations: [PatchOperation], to table: inout Table) throws {
        // So is the patch where most of the order has changed.
        if operations.contains(where: { $0.name == "replace" }) {
            var ids = try JSONValue(parsing: try bytes(table), depthMax: 1000)
            for operation in operations { try operation.apply(to: &ids) }
            return try read(try PatchOperation.node(ids), into: &table)
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
    }
}
