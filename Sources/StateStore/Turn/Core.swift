internal import StateJSON

/// The state, its version and the keys it has seen: everything that a turn decides upon.
///
/// Pure: a turn is computed without changing anything and then adopted, or dropped where it could not be recorded.
struct Core<State: StateType>: Sendable {
    let model: CompiledDomain<State>
    let epoch: Epoch
    var middleware: [Middleware<State>]
    let limits: StoreLimits
    /// The newest computed state.
    private(set) var latest: Snapshot<State>
    /// What is known of its encoding.
    private var texts = KnownTexts()
    private(set) var ledger: IdempotencyLedger

    init(
        model: CompiledDomain<State>, epoch: Epoch, middleware: [Middleware<State>], limits: StoreLimits, state: State,
        version: Version, keys: [KeyRecord]
    ) {
        self.model = model
        self.epoch = epoch
        self.middleware = middleware
        self.limits = limits
        latest = Snapshot(state, of: model, at: Cursor(epoch, version), viewVersions: model.initialViewVersions)
        ledger = IdempotencyLedger(keys)
    }

    /// What a turn has made of what was waiting.
    struct Turn: Sendable {
        var latest: Snapshot<State>
        var consequences: [Consequence] = []
        /// One for each transaction, in order.
        var outcomes: [Outcome] = []
        /// The commits in order.
        fileprivate(set) var commits: [Commit] = []
        fileprivate var texts: KnownTexts
        fileprivate var preconditions: Preconditions<State>
        /// Whether anything beyond the commits themselves follows from them.
        fileprivate(set) var hasConsequences = false
        /// What middleware has dispatched that then swallowed its action, by the transaction's place.
        var uncommittedFollowUps: [(transaction: Int, actions: [any Action])] = []
        /// The keys of this turn, not yet in the ledger.
        fileprivate var keys: [String: KeyRecord] = [:]

        /// The state after the turn.
        var state: State { latest.state }
        /// The version after the turn.
        var version: Version { latest.version }
    }

    var state: State { latest.state }
    var version: Version { latest.version }

    /// Applies the transactions in order, each to what those before it have made.
    ///
    /// What has expired is forgotten first, whatever becomes of the turn: a ledger full of it would refuse every key.
    mutating func turn(_ transactions: [Transaction], at time: Timestamp) -> Turn {
        ledger.forget(before: time)
        var turn = Turn(latest: latest, texts: texts, preconditions: Preconditions(model.layout))
        turn.outcomes.reserveCapacity(transactions.count)
        for transaction in transactions { turn.outcomes.append(take(transaction, in: &turn, at: time)) }
        return turn
    }

    /// Makes a turn's result the present.
    mutating func adopt(_ turn: Turn) {
        latest = turn.latest
        texts = turn.texts
        for commit in turn.commits {
            if let record = commit.idempotency { ledger.insert(record) }
        }
    }

    /// Makes the commit of another writer the newest computed state.
    mutating func take(_ commit: Commit, state: State) -> Snapshot<State> {
        var viewVersions = latest.viewVersions
        model.viewVersion(&viewVersions, changedPointers: commit.changedPointers, at: commit.version)
        latest = Snapshot(state, of: model, at: Cursor(epoch, commit.version), viewVersions: viewVersions)
        texts = KnownTexts()
        if let record = commit.idempotency { ledger.insert(record) }
        return latest
    }

    private func take(_ transaction: Transaction, in turn: inout Turn, at time: Timestamp) -> Outcome {
        if let idempotency = transaction.idempotency, transaction.purpose == .commit {
            if let record = turn.keys[idempotency.key] ?? ledger.record(idempotency.key, at: time) {
                guard record.fingerprint == idempotency.fingerprint else { return .keyReused(key: record.key) }
                return .committed(
                    Receipt(version: record.version, id: record.id, isChange: record.isChange, isReplay: true))
            }
            guard ledger.count + turn.keys.count < limits.idempotencyKeysMax else { return .full(.idempotencyKeys) }
        }
        do {
            if transaction.isConditional,
                let failure = try turn.preconditions.failure(of: transaction, in: turn.state, at: turn.version)
            {
                return .preconditionFailed(failure)
            }
            let context = MiddlewareContext(
                state: turn.state, version: turn.version + 1, isDryRun: transaction.purpose == .dryRun)
            for (index, item) in transaction.items.enumerated() {
                do throws(Rejection) {
                    switch item.content {
                    case .action(let action): try dispatch(action, context, from: 0)
                    case .creator(let create):
                        if let action = try create(context.state) { try dispatch(action, context, from: 0) }
                    }
                } catch {
                    return .rejected(error, index: index)
                }
            }
            guard !context.applied.isEmpty else {
                if !context.isDryRun, !context.followUps.isEmpty {
                    turn.uncommittedFollowUps.append((turn.outcomes.count, context.followUps))
                    turn.hasConsequences = true
                }
                return .nothingCommitted
            }
            var texts = turn.texts
            let patch = try model.patch(
                from: turn.state, to: context.state, by: context.entries, knowing: &texts)
            if transaction.purpose == .dryRun { return .wouldCommit(isChange: !patch.isEmpty, patch: patch.text) }
            let receipt = try commit(transaction, context, patch, in: &turn, at: time)
            turn.texts = texts
            return .committed(receipt)
        } catch {
            return .failed(detail: "the state that the action makes cannot be encoded as JSON: \(error)")
        }
    }

    private func dispatch(_ action: any Action, _ context: MiddlewareContext<State>, from index: Int) throws(Rejection)
    {
        guard index < middleware.count else {
            guard let entry = model.entry(of: action) else { throw CompiledDomain<State>.unknown(action) }
            if entry.isCommand { return try create(from: action, entry, context) }
            // On a copy: a middleware may catch the rejection of a reducer that had begun, and go on.
            var state = context.state
            try TurnMark.reducing { () throws(Rejection) in try model.reduce(&state, action, by: entry) }
            context.state = state
            context.applied.append(action)
            context.entries.append(entry)
            return
        }
        try middleware[index].process(action, context) { (next) throws(Rejection) in
            try dispatch(next, context, from: index + 1)
        }
    }

    /// Dispatches what a command makes.
    private func create(
        from command: any Action, _ entry: ActionEntry, _ context: MiddlewareContext<State>
    ) throws(Rejection) {
        guard let action = try model.create(command, by: entry, in: context.state) else { return }
        // A command that makes a command is fine; one that makes itself would never end.
        guard context.creationDepth < 16 else {
            throw Rejection(
                "command-loop", "\(type(of: command).type) has made 16 commands of commands, and still no action")
        }
        context.creationDepth += 1
        defer { context.creationDepth -= 1 }
        try dispatch(action, context, from: 0)
    }

    private func commit(
        _ transaction: Transaction, _ context: MiddlewareContext<State>, _ patch: JSONPatch, in turn: inout Turn,
        at time: Timestamp
    ) throws -> Receipt {
        let version = turn.version + 1
        let id =
            transaction.form == .single
            ? transaction.items.first?.id ?? Cursor(epoch, version).description
            : Cursor(epoch, version).description
        let record = transaction.idempotency.map {
            KeyRecord(
                key: $0.key, fingerprint: $0.fingerprint, version: version, id: id, isChange: !patch.isEmpty,
                expiry: time.advanced(by: limits.idempotencyLifetime))
        }
        // Nearly always one: its entry knows the array.
        let types = context.entries.count == 1 ? context.entries[0].types : context.entries.map(\.type)
        let commit = Commit(
            version: version, time: time, id: id, cause: transaction.causation?.cause,
            root: transaction.causation?.root,
            types: types,
            action: try text(of: context.applied, transaction), patch: patch.text,
            changedPointers: patch.changedPointers,
            clientIDs: transaction.items.compactMap(\.id), idempotency: record)
        let representation =
            try transaction.wantsRepresentation
            ? Self.represented(patch.changedPointers).map {
                ($0, try model.layout.select(context.state, $0.tokens[...]))
            } : nil
        var viewVersions = turn.latest.viewVersions
        model.viewVersion(&viewVersions, changedPointers: patch.changedPointers, by: context.entries, at: version)
        turn.latest = Snapshot(context.state, of: model, at: Cursor(epoch, version), viewVersions: viewVersions)
        var effects: [Consequence.Effect] = []
        for (index, entry) in context.entries.enumerated() where entry.hasEffects {
            effects.append(Consequence.Effect(entry: entry, action: context.applied[index]))
        }
        turn.commits.append(commit)
        turn.consequences.append(
            Consequence(commit: commit, snapshot: turn.latest, followUps: context.followUps, effects: effects))
        if !effects.isEmpty || !context.followUps.isEmpty { turn.hasConsequences = true }
        if let record { turn.keys[record.key] = record }
        return Receipt(
            version: version, id: id, isChange: !patch.isEmpty, isReplay: false, types: types,
            representation: representation)
    }

    /// The places that a representation tells: where very many were changedPointers, what they have in common.
    private static func represented(_ changedPointers: [JSONPointer]) -> [JSONPointer] {
        guard changedPointers.count > 100 else { return changedPointers }
        return Set(changedPointers.map { JSONPointer(Array($0.tokens.prefix(2))) }).sorted {
            $0.description < $1.description
        }
    }

    /// The recorded JSON: what has reached the reducers, with the IDs and metadata that it came with.
    private func text(of applied: [any Action], _ transaction: Transaction) throws -> [UInt8] {
        var writer = JSONWriter()
        let isArray = transaction.form == .batch || applied.count != 1
        if isArray { writer.byte(UInt8(ascii: "[")) }
        var isFirst = true
        for (index, action) in applied.enumerated() {
            writer.separator(&isFirst)
            // A middleware that multiplies actions breaks the correspondence; then what came beside them is left out.
            let item = applied.count == transaction.items.count ? transaction.items[index] : nil
            try Self.write(action, item, to: &writer)
        }
        if isArray { writer.byte(UInt8(ascii: "]")) }
        return writer.bytes
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
        // Nothing in it: `{}`.
        if writer.bytes.count == start + 2, writer.bytes[start] == UInt8(ascii: "{") {
            writer.bytes.removeSubrange(before...)
        }
        if let meta = item?.meta {
            writer.key("meta", &isFirst)
            writer.raw(meta)
        }
        writer.byte(UInt8(ascii: "}"))
    }
}

/// A commit with what follows from it.
struct Consequence: Sendable {
    /// An action whose effects start or end.
    struct Effect: Sendable {
        let entry: ActionEntry
        let action: any Action
    }

    let commit: Commit
    /// The ``Snapshot`` that it made, as the store knows its type: lists of values whose type depends on the state's
    /// Swift looks up by that type at each step.
    let snapshot: any AnySnapshot
    /// What middleware has dispatched beside it.
    let followUps: [any Action]
    let effects: [Effect]
}

/// How much a store takes on.
public struct StoreLimits: Sendable {
    /// How many transactions may wait for a turn; more are refused at once.
    public var mailboxMax: Int
    /// How many idempotency keys are remembered; above it a request with a new key is refused.
    public var idempotencyKeysMax: Int
    /// How long an idempotency key is remembered.
    public var idempotencyLifetime: Duration
    /// How many commits are kept in memory for `/v1/changes`.
    public var historyCommitsMax: Int
    /// About how many bytes of commits are kept in memory.
    public var historyBytesMax: Int
    /// How many commits deep a cascade may go; what would go deeper is refused.
    public var cascadeDepthMax = 100_000
    /// How many actions a commit may cause in all, through whatever it has caused; more are refused.
    public var cascadeActionsMax = 1_000_000
    /// How many effects may run at once; more are not started, and reported.
    public var effectsMax = 10_000

    /// The limits that the shipped configuration has.
    public init(
        mailboxMax: Int = 65_536, idempotencyKeysMax: Int = 1_000_000, idempotencyLifetime: Duration = .seconds(86_400),
        historyCommitsMax: Int = 100_000, historyBytesMax: Int = 64 << 20
    ) {
        self.mailboxMax = mailboxMax
        self.idempotencyKeysMax = idempotencyKeysMax
        self.idempotencyLifetime = idempotencyLifetime
        self.historyCommitsMax = historyCommitsMax
        self.historyBytesMax = historyBytesMax
    }
}
