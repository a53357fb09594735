internal import StateJSON

extension Core {
    /// The recorded JSON: the actions that have reached the reducers, with their IDs and metadata.
    ///
    /// An action of a client is recorded as it was sent, without white space. One that a command has made, or that a middleware
    /// can have changed, is recorded as its type encodes it, as is an action of the process.
    func recordedBytes(in context: MiddlewareContext<State>, _ pending: PendingTransaction) throws -> [UInt8] {
        let (applied, transaction) = (context.applied, pending.transaction)
        let isArray = transaction.form == .batch || applied.count != 1
        // Where a command has made no action, or a middleware has changed the number, no item belongs to an action: the record
        // then has no IDs and no metadata.
        let hasItems = applied.count == transaction.items.count
        if !isArray, hasItems, let sent = sent(at: 0, in: context, transaction) { return sent }
        var writer = JSONWriter()
        if isArray { writer.byte(UInt8(ascii: "[")) }
        var isFirst = true
        for (index, action) in applied.enumerated() {
            writer.separator(&isFirst)
            if hasItems, let sent = sent(at: index, in: context, transaction) {
                writer.raw(sent)
            } else {
                try Self.write(action, hasItems ? transaction.items[index] : nil, to: &writer)
            }
        }
        if isArray { writer.byte(UInt8(ascii: "]")) }
        return writer.bytes
    }

    /// The JSON that the client has sent of an action, where nothing can have changed the action.
    private func sent(
        at index: Int, in context: MiddlewareContext<State>, _ transaction: Transaction
    ) -> [UInt8]? {
        guard passesActionsOn else { return nil }
        // A command has another type than the action that it makes.
        if context.commands.haveMade, transaction.type(at: index) != context.entries[index].type { return nil }
        return transaction.items[index].sent
    }

    private static func write(_ action: any Action, _ item: Transaction.Item?, to writer: inout JSONWriter) throws {
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.member("id", item?.id, &isFirst)
        writer.member("type", action.typeName, &isFirst)
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
