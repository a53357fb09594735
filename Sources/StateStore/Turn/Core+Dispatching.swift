internal import StateJSON

extension Core {
    func dispatch(
        _ action: any Action, of entry: ActionEntry? = nil, _ context: TransactionContext
    ) throws(Rejection) {
        // Where middleware only validates, the way through them would only cost time.
        if onlyValidates, let entry = entry ?? domain.entry(of: action) {
            try entry.validate?(action)
            return try entry.isCommand ? create(from: action, entry, context) : context.reduce(action, entry)
        }
        try pass(action, context, from: 0)
    }

    func pass(_ action: any Action, _ context: TransactionContext, from index: Int) throws(Rejection) {
        guard index < steps.count else {
            guard let entry = domain.entry(of: action) else { throw .unknownAction(action.typeName) }
            return try entry.isCommand ? create(from: action, entry, context) : context.reduce(action, entry)
        }
        try steps[index].process(action, context) { (next) throws(Rejection) in
            try pass(next, context, from: index + 1)
        }
    }

    private func create(
        from command: any Action, _ entry: ActionEntry, _ context: TransactionContext
    ) throws(Rejection) {
        var made: (any Action)?
        for create in entry.creators where made == nil { made = try create(context.state, command) }
        guard let made else { return }
        // A command may make a command. A command that makes itself would never end without this limit.
        guard context.commands.depth < 16 else {
            throw Rejection(
                "command-loop", "\(command.typeName) has made 16 commands of commands, and still no action")
        }
        context.commands.depth += 1
        context.commands.haveMade = true
        defer { context.commands.depth -= 1 }
        try dispatch(made, context)
    }

    func outcome(byKeyOf transaction: Transaction, of client: String?, at historyTime: Timestamp) -> Outcome? {
        guard let idempotency = transaction.idempotency else { return nil }
        if let record = ledger.record(idempotency.key, at: historyTime) {
            guard record.fingerprint == idempotency.fingerprint else { return .keyReused(key: record.key.key.text) }
            let cursor = Cursor(epoch, record.version)
            return .committed(
                Receipt(
                    cursor, ownID: record.id == cursor.description ? nil : record.id, isChange: record.isChange,
                    isReplay: true))
        }
        guard ledger.count < limits.idempotencyKeysMax else { return .full(.idempotencyKeys) }
        if let client {
            // One client fills at most half of the ledger, so that there is room for another.
            guard ledger.count(of: client) < max(1, limits.idempotencyKeysMax / 2) else {
                return .full(.idempotencyKeysOfClient)
            }
        }
        return nil
    }

    /// The outcome of a scheduled action that is dispatched by no turn any more, or by a later one; nil for one that is due.
    func outcome(of origin: Transaction.Origin, _ schedule: ActionSchedule, at time: Timestamp) -> Outcome? {
        guard let (action, batch) = origin.due else { return nil }
        // Where the journal has not taken an earlier one, the later ones wait for it.
        if batch.hasFailed { return .notRecorded }
        // It is dispatched once, and not before its time.
        guard schedule.has(action) else { return .nothingCommitted }
        guard action.due > time else { return nil }
        // The clock has gone back since the action was found due; the later ones wait with it.
        batch.fail()
        return .notRecorded
    }

    /// A client's action that nothing can have changed is recorded as it was sent, any other as its type encodes it.
    func recordedBytes(in context: TransactionContext, _ transaction: Transaction) throws -> [UInt8] {
        let applied = context.applied
        if context.isRestored { return transaction.items[0].sent ?? [] }
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
                let item = hasItems ? transaction.items[index] : nil
                try action.writeRecord(id: item?.id, meta: item?.meta, to: &writer)
            }
        }
        if isArray { writer.byte(UInt8(ascii: "]")) }
        return writer.bytes
    }

    private func sent(
        at index: Int, in context: TransactionContext, _ transaction: Transaction
    ) -> [UInt8]? {
        guard passesActionsOn else { return nil }
        // A command has another type than the action that it makes.
        if context.commands.haveMade, transaction.type(at: index) != context.entries[index].type { return nil }
        return transaction.items[index].sent
    }

    /// The pointers of a representation: above 100 changed pointers, their common parents of at most two tokens.
    static func representedPointers(_ changedPointers: [JSONPointer]) -> [JSONPointer] {
        guard changedPointers.count > 100 else { return changedPointers }
        return Set(changedPointers.map { JSONPointer(Array($0.tokens.prefix(2))) }).sorted {
            $0.description < $1.description
        }
    }
}

extension Action {
    func writeRecord(id: String?, meta: [UInt8]?, to writer: inout JSONWriter) throws {
        writer.byte(UInt8(ascii: "{"))
        writer.member("id", id)
        writer.member("type", typeName)
        let before = writer.bytes.count
        writer.key("payload")
        let start = writer.bytes.count
        try JSON.write(self, to: &writer)
        // An empty payload (`{}`) is left out.
        if writer.bytes.count == start + 2, writer.bytes[start] == UInt8(ascii: "{") {
            writer.bytes.removeSubrange(before...)
        }
        if let meta { writer.member("meta", json: meta) }
        writer.byte(UInt8(ascii: "}"))
    }
}

struct Consequence: Sendable {
    let snapshot: Snapshot
    let followUps: [Transaction]
    let effects: [(entry: ActionEntry, action: any Action)]
}
