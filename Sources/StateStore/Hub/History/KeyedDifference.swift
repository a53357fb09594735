package import StateJSON

/// The entities that commits have added, changed and removed, by table; O(n) in the size of the patches.
package struct KeyedDifference: Sendable {
    package enum Outcome: String, Sendable, CaseIterable {
        /// The entity is in a table that is new as a whole: what a client knows of the table no longer counts.
        case initial
        case added
        case changed
        case removed
    }

    private struct Table {
        /// Whether the whole table is new, so that an entity that is not listed is not in it.
        var isNew = false
        var outcomes: [JSONKey: Outcome?] = [:]
        var order: [JSONKey] = []

        mutating func meet(_ key: JSONKey, _ outcome: Outcome) {
            guard let known = outcomes[key] else {
                outcomes[key] = .some(outcome)
                order.append(key)
                return
            }
            outcomes[key] = .some(Self.sum(known, outcome))
        }

        /// The sum of two differences in a row, or nil if they cancel each other.
        private static func sum(_ first: Outcome?, _ second: Outcome) -> Outcome? {
            switch (first, second) {
            case (.initial?, .removed), (.added?, .removed): nil
            case (.initial?, _): .initial
            case (.added?, _): .added
            case (.removed?, .added): .changed
            case (nil, _), (.changed?, _), (.removed?, _): second
            }
        }
    }

    private let collections: [Collection]
    private let seen: PointerSet?
    private var tables: [Int: Table] = [:]

    /// Begins with the parts that the client may see, nil for all; an entity of which it sees nothing is in no list.
    package init(_ collections: [Collection], seen: PointerSet? = nil) {
        self.collections = collections
        self.seen = seen
    }

    /// Adds a commit's RFC 6902 operations as UTF-8 JSON; never throws for the patch of a commit.
    package mutating func add(patch: [UInt8]) throws {
        guard patch.count > 2 else { return }
        for operation in try PatchOperation.all(in: patch) {
            let pointer = operation.pointer
            for index in collections.indices where collections[index].entities.overlaps(pointer) {
                note(operation, in: index)
            }
        }
    }

    private mutating func note(_ operation: PatchOperation, in index: Int) {
        let (entities, pointer) = (collections[index].entities, operation.pointer)
        guard let key = operation.inside(entities).tokens.first else {
            // The patch replaces the whole table, or a value that contains it.
            guard seen?.overlaps(entities) ?? true else { return }
            var table = Table(isNew: true)
            if case .object(let members)? = operation.inside(entities).value {
                let isSeen = seen?.covers(entities) ?? true
                for (key, entity) in members.members where isSeen || sees(entity, at: entities.appending(key)) {
                    table.meet(JSONKey(key), .initial)
                }
            }
            tables[index] = table
            return
        }
        guard seen?.overlaps(pointer) ?? true else { return }
        // The part of an entity that the client sees may have been there before, and may be missing now.
        let isWhole = pointer.tokens.count == entities.tokens.count + 1 && seen?.covers(pointer) ?? true
        let outcome: Outcome =
            switch operation.name {
            case "add" where isWhole: .added
            case "remove" where isWhole: .removed
            default: .changed
            }
        tables[index, default: Table()].meet(JSONKey(key), outcome)
    }

    private func sees(_ entity: JSONValue, at pointer: JSONPointer) -> Bool {
        guard let seen, !seen.covers(pointer) else { return true }
        return seen.overlapping(pointer).contains { part in
            entity[pointer: JSONPointer(Array(part.tokens.dropFirst(pointer.tokens.count)))] != nil
        }
    }

    /// Appends a JSON object: for each table with a difference its pointer, relative to `scope`, with lists of IDs.
    package func write(at pointer: JSONPointer, of scope: Scope, to writer: inout JSONWriter) {
        writer.object { writer in
            for (index, collection) in collections.enumerated() {
                guard let table = tables[index], collection.entities.overlaps(pointer),
                    let tablePointer = scope.inner(collection.entities)
                else { continue }
                // A pointer into a table selects one entity.
                let only = pointer.tokens.dropFirst(collection.entities.tokens.count).first.map { JSONKey($0) }
                let order = table.order.filter { only == nil || $0 == only }
                let outcomes = Outcome.allCases.map { outcome in
                    (outcome, order.filter { table.outcomes[$0] == .some(.some(outcome)) })
                }
                // A new table without entities is listed, too: a client has to drop the entities that it knows.
                let listed = outcomes.filter { !$0.1.isEmpty || ($0.0 == .initial && table.isNew) }
                guard !listed.isEmpty else { continue }
                writer.key(escaping: tablePointer.description)
                writer.object { writer in
                    for (outcome, keys) in listed {
                        writer.key(escaping: outcome.rawValue)
                        writer.array(keys) { key, writer in writer.raw(collection.id(key.text)) }
                    }
                }
            }
        }
    }
}
