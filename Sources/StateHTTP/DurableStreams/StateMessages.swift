internal import HTTPMessages
internal import StateJSON
package import StateStore

/// Messages of the State Protocol: `packages/state/STATE-PROTOCOL.md` of `durable-streams/durable-streams`, June 2026.
extension Contract {
    func messages(
        of store: VisibleStore, from position: Int, _ page: EntityPage, at cursor: Cursor
    ) throws -> [UInt8] {
        let parts = catalogue.parts
        var writer = JSONWriter(capacity: page.entities.reduce(256) { $0 + $1.value.count + 128 })
        writer.byte(UInt8(ascii: "["))
        if position == 0 { boundary("snapshot-start", cursor, to: &writer) }
        for entity in page.entities {
            let pointer = parts[entity.part].pointer(of: entity.name)
            var bytes = entity.value
            if !store.access.sees(pointer) {
                let whole = try JSONValue(parsing: entity.value, depthMax: 1000)
                guard let value = store.visible(whole, at: pointer) else { continue }
                bytes = value.text
            }
            let (type, key) = Self.name(of: entity.name, in: parts[entity.part], store)
            writer.comma()
            writer.object {
                $0.member("type", type)
                $0.member("key", key)
                $0.member("value", json: bytes)
                $0.member("headers", json: "{\"operation\":\"insert\"}".utf8)
            }
        }
        if !page.isMore { boundary("snapshot-end", cursor, to: &writer) }
        writer.byte(UInt8(ascii: "]"))
        return writer.bytes
    }

    private func boundary(_ name: String, _ cursor: Cursor, to writer: inout JSONWriter) {
        writer.comma()
        writer.raw("{\"headers\":{\"control\":\"\(name)\",\"offset\":\"\(StreamOffset(cursor, .behind).text)\"}}".utf8)
    }

    static func name(of name: EntityName, in part: StatePart, _ store: VisibleStore) -> (type: String, key: String) {
        let tokens = (store.inner(part.pointer) ?? part.pointer).tokens
        switch name {
        case .member(let key): return (type(tokens[...]), key.text)
        case .whole: return (type(tokens.dropLast()), tokens.last ?? "value")
        }
    }

    private static func type(_ tokens: ArraySlice<String>) -> String {
        guard !tokens.isEmpty else { return "." }
        return tokens.map { $0.replacing("~", with: "~0").replacing(".", with: "~2") }.joined(separator: ".")
    }

    func streams(of store: VisibleStore) -> [UInt8] {
        var types: [JSONValue] = []
        for part in catalogue.parts where part.isInside(store.pointer) && store.access.seesSome(of: part.pointer) {
            for (name, schema) in Self.entities(of: part)
            where store.access.seesSome(of: part.pointer(of: name ?? .whole)) {
                let (type, key) = Self.name(of: name ?? .member(JSONKey("")), in: part, store)
                let named: [(String, JSONValue)] = name == nil ? [] : [("key", .string(key))]
                types.append(.of([("type", .string(type))] + named + [("value", schema)]))
            }
        }
        let commits: JSONValue = ["name": "commits", "href": .string("\(store.path)/streams/commits")]
        let state: JSONValue = [
            "name": "state", "href": .string("\(store.path)/streams/state"), "types": .array(types),
        ]
        return JSONValue.of(("streams", [commits, state])).text
    }

    /// The entities of a part with the JSON Schema of their values; a name of nil stands for every ID.
    private static func entities(of part: StatePart) -> [(name: EntityName?, schema: JSONValue)] {
        let schema = part.schema ?? part.valueType.map(SchemaProbe.schema) ?? [:]
        switch part.kind {
        case .entities: return [(nil, schema)]
        // The first ID of an order has null, which a type of Swift does not write.
        case .order:
            let after: JSONValue = ["after": ["type": ["string", "null"]]]
            return [(nil, ["type": "object", "properties": after, "required": ["after"]])]
        case .field: return [(.whole, schema)]
        case .value:
            // A part of any JSON is sent member by member if it is an object, else whole.
            guard schema["type"] != .null else { return [(nil, [:]), (.whole, schema)] }
            guard schema["type"] == "object" else { return [(.whole, schema)] }
            return members(of: schema, besides: [])
        case .members(let others): return members(of: schema, besides: others)
        }
    }

    private static func members(
        of schema: JSONValue, besides others: Set<String>
    ) -> [(name: EntityName?, schema: JSONValue)] {
        let named: [(EntityName?, JSONValue)] = schema["properties"].members.members
            .filter { !others.contains($0.key) }.map { (.member(JSONKey($0.key)), $0.value) }
        let rest = schema["additionalProperties"]
        return rest == false ? named : named + [(nil, rest == .null ? [:] : rest)]
    }
}

package struct StateMessages: Sendable {
    private let parts: [StatePart]
    private let store: VisibleStore
    private let epoch: Epoch
    private let hasOldValues: Bool
    private var writer = JSONWriter()

    package init(_ contract: Contract, of store: VisibleStore, epoch: Epoch, hasOldValues: Bool) {
        (parts, self.store, self.epoch, self.hasOldValues) = (contract.parts, store, epoch, hasOldValues)
        writer.byte(UInt8(ascii: "["))
    }

    package var bytesCount: Int { writer.bytes.count }

    package mutating func append(_ changes: [EntityChange], of commit: Commit) {
        guard !changes.isEmpty else { return }
        let id = store.visible(commit, epoch: epoch).id
        for change in changes {
            let part = parts[change.part]
            let pointer = part.pointer(of: change.name)
            let (before, after) = (store.visible(change.before, at: pointer), store.visible(change.after, at: pointer))
            // All that has changed may be hidden from the client.
            guard before != after else { continue }
            let (type, key) = Contract.name(of: change.name, in: part, store)
            writer.comma()
            writer.object { writer in
                writer.member("type", type)
                writer.member("key", key)
                if let after { writer.member("value", after) }
                if hasOldValues, let before { writer.member("old_value", before) }
                writer.key("headers")
                writer.object {
                    $0.member("operation", before == nil ? "insert" : after == nil ? "delete" : "update")
                    $0.member("txid", id)
                    $0.member("timestamp", Contract.text(commit.time))
                }
            }
        }
    }

    package consuming func array() -> [UInt8] {
        writer.byte(UInt8(ascii: "]"))
        return writer.bytes
    }
}

extension JSONValue {
    mutating func insert(_ value: JSONValue, at tokens: ArraySlice<String>) {
        guard let token = tokens.first else {
            self = value
            return
        }
        var member = members[token] ?? [:]
        member.insert(value, at: tokens.dropFirst())
        self[token] = member
    }
}
