internal import HTTPMessages
package import StateJSON
package import StateStore

/// Messages of the State Protocol: inserts, updates and deletes of entities.
///
/// The protocol is `packages/state/STATE-PROTOCOL.md` of the repository `durable-streams/durable-streams`, as of June 2026.
extension Contract {
    func messages(
        of request: EntitiesRequest, from position: Int, _ page: EntityPage, at cursor: Cursor
    ) throws -> [UInt8] {
        let (parts, store) = (catalogue.parts, request.store)
        var writer = JSONWriter(capacity: page.entities.reduce(256) { $0 + $1.value.count + 128 })
        var isFirst = true
        writer.byte(UInt8(ascii: "["))
        if position == 0 { boundary("snapshot-start", cursor, &isFirst, to: &writer) }
        for entity in page.entities {
            let pointer = parts[entity.part].pointer(of: entity.name)
            guard store.access.sees(pointer) else {
                let whole = try JSONValue(parsing: entity.value, depthMax: 1000)
                guard let value = store.visible(whole, at: pointer) else { continue }
                write(entity.part, entity.name, "insert", value.text, store, &isFirst, to: &writer)
                continue
            }
            write(entity.part, entity.name, "insert", entity.value, store, &isFirst, to: &writer)
        }
        if !page.isMore { boundary("snapshot-end", cursor, &isFirst, to: &writer) }
        writer.byte(UInt8(ascii: "]"))
        return writer.bytes
    }

    private func boundary(_ name: String, _ cursor: Cursor, _ isFirst: inout Bool, to writer: inout JSONWriter) {
        writer.separator(&isFirst)
        writer.raw("{\"headers\":{\"control\":\"\(name)\",\"offset\":\"\(StreamOffset(cursor, .behind).text)\"}}".utf8)
    }

    private func write(
        _ part: Int, _ name: EntityName, _ operation: String, _ value: [UInt8], _ store: VisibleStore,
        _ isFirst: inout Bool, to writer: inout JSONWriter
    ) {
        writer.separator(&isFirst)
        let (type, key) = Self.name(of: name, in: catalogue.parts[part], store)
        writer.raw("{\"type\":")
        writer.string(type)
        writer.raw(",\"key\":")
        writer.string(key)
        writer.raw(",\"value\":")
        writer.raw(value)
        writer.raw(",\"headers\":{\"operation\":\"\(operation)\"}}".utf8)
    }

    fileprivate func write(
        _ changes: [EntityChange], of commit: Commit, of store: VisibleStore, epoch: Epoch, hasOldValues: Bool,
        _ isFirst: inout Bool, to writer: inout JSONWriter
    ) {
        guard !changes.isEmpty else { return }
        let id = store.visible(commit, epoch: epoch).id
        for change in changes {
            let pointer = catalogue.parts[change.part].pointer(of: change.name)
            let (before, after) = (store.visible(change.before, at: pointer), store.visible(change.after, at: pointer))
            // All that has changed may be hidden from the client.
            guard before != after else { continue }
            writer.separator(&isFirst)
            let (type, key) = Self.name(of: change.name, in: catalogue.parts[change.part], store)
            writer.raw("{\"type\":")
            writer.string(type)
            writer.raw(",\"key\":")
            writer.string(key)
            if let after {
                writer.raw(",\"value\":")
                after.write(to: &writer)
            }
            if hasOldValues, let before {
                writer.raw(",\"old_value\":")
                before.write(to: &writer)
            }
            let operation = before == nil ? "insert" : after == nil ? "delete" : "update"
            writer.raw(",\"headers\":{\"operation\":\"\(operation)\",\"txid\":".utf8)
            writer.string(id)
            writer.raw(",\"timestamp\":")
            writer.string(Self.text(commit.time))
            writer.raw("}}")
        }
    }

    // MARK: Types and keys

    static func name(of name: EntityName, in part: StatePart, _ store: VisibleStore) -> (type: String, key: String) {
        let tokens = (store.inner(part.pointer) ?? part.pointer).tokens
        switch name {
        case .member(let key): return (type(tokens[...]), key.text)
        case .whole: return (type(tokens.dropLast()), tokens.last ?? "value")
        }
    }

    /// The type of the entities below a pointer: its tokens with dots between them, and a dot for the whole state.
    private static func type(_ tokens: ArraySlice<String>) -> String {
        guard !tokens.isEmpty else { return "." }
        return tokens.map { $0.replacing("~", with: "~0").replacing(".", with: "~2") }.joined(separator: ".")
    }

    func streams(of store: VisibleStore) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"streams\":[{\"name\":\"commits\",\"href\":")
        writer.string("\(store.path)/streams/commits")
        writer.raw("},{\"name\":\"state\",\"href\":")
        writer.string("\(store.path)/streams/state")
        writer.raw(",\"types\":[")
        var isFirst = true
        for part in catalogue.parts where part.isInside(store.pointer) {
            guard store.access.seesSome(of: part.pointer) else { continue }
            for (name, schema) in Self.entities(of: part) {
                guard store.access.seesSome(of: part.pointer(of: name ?? .whole)) else { continue }
                let (type, key) = Self.name(of: name ?? .member(JSONKey("")), in: part, store)
                writer.separator(&isFirst)
                writer.raw("{\"type\":")
                writer.string(type)
                if name != nil {
                    writer.raw(",\"key\":")
                    writer.string(key)
                }
                writer.raw(",\"value\":")
                schema.write(to: &writer)
                writer.byte(UInt8(ascii: "}"))
            }
        }
        writer.raw("]}]}")
        return writer.bytes
    }

    /// The entities of a part with the JSON Schema of their values; a name of nil stands for every ID.
    private static func entities(of part: StatePart) -> [(name: EntityName?, schema: JSONValue)] {
        let schema = part.schema ?? part.valueType.map(SchemaProbe.schema) ?? [:]
        switch part.kind {
        case .entities: return [(nil, schema)]
        // The first ID of an order has null, which a type of Swift does not write.
        case .order:
            return [
                (
                    nil,
                    ["type": "object", "properties": ["after": ["type": ["string", "null"]]], "required": ["after"]]
                )
            ]
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
        var named: [(EntityName?, JSONValue)] = []
        if case .object(let members) = schema["properties"] {
            named = members.members.filter { !others.contains($0.key) }.map { (.member(JSONKey($0.key)), $0.value) }
        }
        let rest = schema["additionalProperties"]
        return rest == false ? named : named + [(nil, rest == .null ? [:] : rest)]
    }
}

/// The messages of commits, written one commit after the other.
package struct StateMessages: Sendable {
    private let contract: Contract
    private let store: VisibleStore
    private let epoch: Epoch
    private let hasOldValues: Bool
    private var writer = JSONWriter()
    private var isFirst = true

    package init(_ contract: Contract, of store: VisibleStore, epoch: Epoch, hasOldValues: Bool) {
        self.contract = contract
        self.store = store
        self.epoch = epoch
        self.hasOldValues = hasOldValues
        writer.byte(UInt8(ascii: "["))
    }

    /// How many bytes the messages have so far.
    package var bytesCount: Int { writer.bytes.count }

    /// Appends the messages of a commit.
    package mutating func append(_ changes: [EntityChange], of commit: Commit) {
        contract.write(
            changes, of: commit, of: store, epoch: epoch, hasOldValues: hasOldValues, &isFirst, to: &writer)
    }

    /// The messages as an array, UTF-8 JSON.
    package consuming func array() -> [UInt8] {
        writer.byte(UInt8(ascii: "]"))
        return writer.bytes
    }
}

extension VisibleStore {
    /// Whether the client sees some of the value at a pointer; nil for a client that sees everything.
    package var visibility: ((JSONPointer) -> Bool)? {
        guard !access.sees(pointer) else { return nil }
        return { [access] in access.seesSome(of: $0) }
    }

    func visible(_ value: JSONValue?, at pointer: JSONPointer) -> JSONValue? {
        guard let value, let parts = access.parts(of: pointer) else { return value }
        var seen: JSONValue?
        for part in parts {
            let rest = part.tokens.dropFirst(pointer.tokens.count)
            guard let found = value[pointer: JSONPointer(Array(rest))] else { continue }
            var whole = seen ?? [:]
            whole.insert(found, at: rest)
            seen = whole
        }
        return seen
    }
}

extension JSONValue {
    fileprivate mutating func insert(_ value: JSONValue, at tokens: ArraySlice<String>) {
        guard let token = tokens.first else {
            self = value
            return
        }
        var object = if case .object(let object) = self { object } else { JSONObject() }
        var member = object[token] ?? [:]
        member.insert(value, at: tokens.dropFirst())
        object[token] = member
        self = .object(object)
    }
}
