package import StateJSON

/// Which entities came, went and changed, table by table.
///
/// It costs what the patches hold, however large the tables are.
package struct KeyedDifference: Sendable {
    /// What became of an entity.
    package enum Fate: String, Sendable, CaseIterable {
        /// The whole table is new: what was known of it no longer counts.
        case initial
        case added
        case changed
        case removed
    }

    private struct Table {
        /// Whether the whole table is new, so that what is not listed is gone.
        var isNew = false
        var fates: [JSONKey: Fate?] = [:]
        /// The members in the order in which they were first met.
        var order: [JSONKey] = []

        mutating func meet(_ key: JSONKey, _ fate: Fate) {
            guard let known = fates[key] else {
                fates[key] = .some(fate)
                order.append(key)
                return
            }
            fates[key] = .some(Self.sum(known, fate))
        }

        /// What two fates in a row come to; nil for nothing.
        private static func sum(_ first: Fate?, _ second: Fate) -> Fate? {
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
    private var tables: [Int: Table] = [:]

    /// Begins with no difference.
    package init(_ collections: [Collection]) {
        self.collections = collections
    }

    /// Adds what a commit has changed.
    ///
    /// - Parameter patch: RFC 6902 operations, as commits have them.
    package mutating func add(patch: [UInt8]) throws(JSONFault) {
        guard patch.count > 2, case .array(let operations) = try JSONValue(parsing: patch, depthMax: 1000) else {
            return
        }
        for case .object(let operation) in operations {
            guard case .string(let name)? = operation["op"], case .string(let path)? = operation["path"],
                let pointer = JSONPointer(text: path)
            else { continue }
            for index in collections.indices where collections[index].entities.overlaps(pointer) {
                note(name, pointer.tokens, operation["value"], in: index)
            }
        }
    }

    private mutating func note(_ name: String, _ tokens: [String], _ value: JSONValue?, in index: Int) {
        let place = collections[index].entities.tokens
        guard tokens.count > place.count else {
            // The table or something around it is new as a whole.
            var table = Table(isNew: true)
            let rest = JSONPointer(Array(place.dropFirst(tokens.count)))
            if case .object(let members)? = value?[pointer: rest] {
                for (key, _) in members.members { table.meet(JSONKey(key), .initial) }
            }
            tables[index] = table
            return
        }
        let isWhole = tokens.count == place.count + 1
        let fate: Fate = !isWhole ? .changed : name == "add" ? .added : name == "remove" ? .removed : .changed
        tables[index, default: Table()].meet(JSONKey(tokens[place.count]), fate)
    }

    /// Appends a JSON object: for each table with a difference its place, and lists of IDs.
    ///
    /// - Parameters:
    ///   - pointer: only tables that lie in this place, or around it.
    ///   - scope: the store whose places are written.
    package func write(at pointer: JSONPointer, of scope: Scope, to writer: inout JSONWriter) {
        writer.byte(UInt8(ascii: "{"))
        var isFirst = true
        for (index, collection) in collections.enumerated() {
            guard let table = tables[index], collection.entities.overlaps(pointer),
                let place = scope.inner(collection.entities)
            else { continue }
            // Inside a table, only the one entity counts.
            let only = pointer.tokens.dropFirst(collection.entities.tokens.count).first.map(JSONKey.init)
            let order = table.order.filter { only == nil || $0 == only }
            let fates = Fate.allCases.map { fate in (fate, order.filter { table.fates[$0] == .some(.some(fate)) }) }
            // A new table without members is told, too: whoever knew others forgets them.
            let told = fates.filter { !$0.1.isEmpty || ($0.0 == .initial && table.isNew) }
            guard !told.isEmpty else { continue }
            writer.separator(&isFirst)
            writer.string(place.description)
            writer.raw(":{")
            var isFirstFate = true
            for (fate, keys) in told {
                writer.separator(&isFirstFate)
                writer.string(fate.rawValue)
                writer.byte(UInt8(ascii: ":"))
                writer.array(keys) { key, writer in writer.raw(collection.id(key.text)) }
            }
            writer.byte(UInt8(ascii: "}"))
        }
        writer.byte(UInt8(ascii: "}"))
    }
}
