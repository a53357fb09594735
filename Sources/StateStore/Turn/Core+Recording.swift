internal import StateJSON

/// How a turn records its actions.
extension Core {
    /// The recorded JSON: the actions that have reached the reducers, with their IDs and metadata.
    func recordedBytes(in context: MiddlewareContext<State>, _ pending: PendingTransaction) throws -> [UInt8] {
        if let recorded = recordedByClient(context, pending) { return recorded }
        let applied = context.applied
        var writer = JSONWriter()
        let isArray = pending.transaction.form == .batch || applied.count != 1
        if isArray { writer.byte(UInt8(ascii: "[")) }
        var isFirst = true
        for (index, action) in applied.enumerated() {
            writer.separator(&isFirst)
            // Where a middleware has changed the number of actions, no item belongs to an action: the record then has no
            // IDs and no metadata.
            let item = applied.count == pending.transaction.items.count ? pending.transaction.items[index] : nil
            try Self.write(action, item, to: &writer)
        }
        if isArray { writer.byte(UInt8(ascii: "]")) }
        return writer.bytes
    }

    /// The JSON that the client has sent, where it is what would be recorded and nothing has changed the action.
    private func recordedByClient(
        _ context: MiddlewareContext<State>, _ pending: PendingTransaction
    ) -> [UInt8]? {
        // A command makes another action.
        guard passesActionsOn, !context.hasCommand, pending.transaction.form == .single, context.applied.count == 1,
            pending.transaction.items.count == 1
        else { return nil }
        return pending.transaction.items[0].recorded?.bytes
    }

    private static func write(_ action: any Action, _ item: Transaction.Item?, to writer: inout JSONWriter) throws {
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.member("id", item?.id, &isFirst)
        writer.member("type", type(of: action).type, &isFirst)
        let before = writer.bytes.count
        writer.key("payload", &isFirst)
        let start = writer.bytes.count
        try JSON.write(action, to: &writer)
        // An empty payload (`{}`) is left out.
        if writer.bytes.count == start + 2, writer.bytes[start] == UInt8(ascii: "{") {
            writer.bytes.removeSubrange(before...)
        }
        if let meta = item?.meta {
            writer.key("meta", &isFirst)
            writer.raw(meta)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    /// The pointers of a representation: above 100 changed pointers, their common parents of at most two tokens.
    static func representedPointers(_ changedPointers: [JSONPointer]) -> [JSONPointer] {
        guard changedPointers.count > 100 else { return changedPointers }
        return Set(changedPointers.map { JSONPointer(Array($0.tokens.prefix(2))) }).sorted {
            $0.description < $1.description
        }
    }
}
