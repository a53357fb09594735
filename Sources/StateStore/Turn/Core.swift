internal import StateJSON

struct Turn: Sendable {
    let before: Snapshot
    let historyTime: Timestamp
    fileprivate(set) var consequences: [Consequence] = []
    fileprivate(set) var outcomes: [Outcome] = []
    fileprivate(set) var commits: [Commit] = []
    fileprivate(set) var hasConsequences = false
    /// The dispatches of middleware and creators in transactions without a commit, by the transaction's index.
    fileprivate(set) var uncommittedFollowUps: [(transaction: Int, followUps: [Transaction])] = []

    var latest: Snapshot { consequences.last?.snapshot ?? before }
    var version: Version { latest.cursor.version }
}

/// The state, its version and the idempotency keys: everything that a turn depends on.
///
/// One thread at a time uses it: what runs on the store's queue, or for a dry run. It is an object, because Swift looks
/// up the metadata of a generic value each time that somebody lends it.
final class Core {
    // exclusivity unchecked: one turn uses the variables, and a check takes as long as ten accesses.

    let domain: CompiledDomain
    let epoch: Epoch
    @exclusivity(unchecked) private(set) var steps: [MiddlewareStep] = []
    @exclusivity(unchecked) private(set) var passesActionsOn = true
    @exclusivity(unchecked) private(set) var onlyValidates = true
    let limits: StoreLimits
    private let mark: ReductionMark?
    /// Whether the bytes of a state are known at any time.
    private let knowsSize: Bool
    @exclusivity(unchecked) private(set) var latest: Snapshot
    /// The patch that made ``latest``; its memory is that of each turn.
    @exclusivity(unchecked) private var patch = JSONPatch()
    private let encoder = JSONEncodingSession(isKeeping: true)
    /// The context of the last transaction, which the next one uses again.
    @exclusivity(unchecked) private var context: TransactionContext?
    /// The findings of the preconditions of ``latest``, or nil for none or many.
    @exclusivity(unchecked) private var preconditions: Preconditions?
    @exclusivity(unchecked) private(set) var ledger: IdempotencyLedger
    @exclusivity(unchecked) var historyClock: HistoryClock

    convenience init(
        domain: CompiledDomain, epoch: Epoch, middleware: [MiddlewareStep], limits: StoreLimits, state: StateBox,
        version: Version, keys: [KeyRecord], historyTime: Timestamp? = nil,
        schedule: ActionSchedule = ActionSchedule(), mark: ReductionMark? = nil
    ) {
        guard let tree = try? domain.tree(of: state) else {
            preconditionFailure("whoever begins a store with a state has encoded it")
        }
        let latest = Snapshot(
            state, tree, of: domain, at: Cursor(epoch, version), viewVersions: domain.initialViewVersions,
            schedule: schedule)
        self.init(latest, of: domain, middleware, limits, keys: keys, historyTime: historyTime, mark: mark)
        // Losing the error is right: a state that begins a store can be encoded, and a turn would find it otherwise.
        if limits.stateBytesMax < .max { latest.bytesCount = try? size(of: latest) }
    }

    init(
        _ latest: Snapshot, of domain: CompiledDomain, _ middleware: [MiddlewareStep], _ limits: StoreLimits,
        keys: [KeyRecord] = [], historyTime: Timestamp? = nil, mark: ReductionMark?
    ) {
        (self.mark, self.domain, self.limits, self.latest) = (mark, domain, limits, latest)
        epoch = latest.cursor.epoch
        knowsSize = latest.state.document != nil
        historyClock = HistoryClock(historyTime)
        ledger = IdempotencyLedger(keys, expiryMax: historyTime?.advanced(by: limits.idempotencyLifetime))
        install(middleware)
    }

    deinit { encoder.end() }

    var state: StateBox { latest.state }
    var version: Version { latest.version }

    func install(_ middleware: [MiddlewareStep]) {
        steps = middleware
        passesActionsOn = middleware.allSatisfy(\.passesActionsOn)
        onlyValidates = middleware.allSatisfy(\.onlyValidates)
    }

    /// Applies the transactions in order.
    ///
    /// The ledger first drops the expired keys, which no going back brings back: a ledger full of them would refuse
    /// every new key. The `clock` is the processor time of the thread.
    func turn(
        _ pending: [PendingTransaction], at time: Timestamp, monotonic: () -> Instant,
        clock: () -> Instant = { Instant(nanoseconds: 0) }, inside turnMark: TurnMark? = nil
    ) -> Turn {
        let historyTime = historyClock.read(wall: time, monotonic: monotonic)
        if ledger.count > 0 { ledger.forget(before: historyTime) }
        var turn = Turn(before: latest, historyTime: historyTime)
        turn.outcomes.reserveCapacity(pending.count)
        turn.commits.reserveCapacity(pending.count)
        turn.consequences.reserveCapacity(pending.count)
        // A copy of a pending transaction counts each of its references.
        for index in pending.indices {
            turn.outcomes.append(
                apply(pending[index].transaction, of: pending[index].taker.client, in: &turn, at: time, clock, turnMark)
            )
        }
        mark?.end()
        if let made = preconditions, !made.isWorthKeeping(at: latest.version) { preconditions = nil }
        return turn
    }

    func goBack(to snapshot: Snapshot, without commits: [Commit]) {
        latest = snapshot
        forgetFindings()
        for record in commits.compactMap(\.idempotency) { ledger.drop(record.key) }
    }

    func adopt(_ commit: Commit, _ state: StateBox, _ tree: JSONTree) -> Snapshot {
        var viewVersions = latest.viewVersions
        domain.noteViewVersions(&viewVersions, changedPointers: commit.changedPointers, at: commit.version)
        var schedule = latest.schedule
        schedule.apply(commit.schedule)
        latest = Snapshot(
            state, tree, of: domain, at: Cursor(epoch, commit.version), viewVersions: viewVersions, schedule: schedule)
        forgetFindings()
        if let record = commit.idempotency { ledger.insert(record) }
        return latest
    }

    /// Forgets what is known of a state that is not the newest one any more; another state can get its version.
    private func forgetFindings() { (preconditions, context) = (nil, nil) }

    private func apply(
        _ transaction: Transaction, of client: String?, in turn: inout Turn, at time: Timestamp,
        _ clock: () -> Instant, _ turnMark: TurnMark?
    ) -> Outcome {
        if transaction.idempotency != nil, transaction.purpose == .commit,
            let outcome = outcome(byKeyOf: transaction, of: client, at: turn.historyTime)
        {
            return outcome
        }
        if let origin = transaction.origin, let outcome = outcome(of: origin, latest.schedule, at: time) {
            return outcome
        }
        do {
            if transaction.isConditional {
                let preconditions = preconditions ?? Preconditions()
                self.preconditions = preconditions
                if let failure = try preconditions.failure(of: transaction, in: latest) {
                    return .preconditionFailed(failure)
                }
            }
            if let mark {
                if let record = MarkPage.Record(transaction) {
                    if let refused = mark.begin(record) { return .rejected(.quarantined(refused.name), index: 0) }
                } else {
                    mark.end()
                }
            }
            let before = latest
            // Middleware of the store's own keeps no context, so that the next transaction uses it again.
            let context = (passesActionsOn ? self.context : nil) ?? TransactionContext(before)
            if passesActionsOn { self.context = context }
            context.begin(before, transaction, at: time, mark: turnMark)
            turnMark?.collector = context
            defer {
                turnMark?.collector = nil
                context.end(at: latest)
            }
            if let refusal = dispatchItems(of: transaction, context, before, clock) { return refusal }
            guard let made = context.made else {
                if !context.isDryRun, !context.followUps.isEmpty {
                    turn.uncommittedFollowUps.append((turn.outcomes.count, context.followUps))
                    turn.hasConsequences = true
                }
                return .nothingCommitted
            }
            if context.isRestored {
                patch.begin()
                try JSONTree.compare(before.tree, made.tree, into: &patch)
            } else {
                made.tree = try domain.tree(
                    of: made.state, after: before.tree, by: context.entries, encoder, into: &patch)
            }
            if limits.stateBytesMax < .max, !knowsSize {
                let bytes = try (before.bytesCount ?? size(of: before)) + patch.growth
                made.bytesCount = bytes
                if bytes > limits.stateBytesMax, let tooLarge = refusal(of: bytes, before) { throw tooLarge }
            }
            if transaction.purpose == .dryRun { return try dryRun(transaction, of: client, context, made, at: time) }
            return .committed(try commit(transaction, of: client, context, made, by: &patch, in: &turn, at: time))
        } catch let rejection as Rejection {
            return .rejected(rejection, index: 0)
        } catch {
            return .failed(detail: "the state that the action makes cannot be encoded as JSON: \(error)")
        }
    }

    private func dispatchItems(
        of transaction: Transaction, _ context: TransactionContext, _ before: Snapshot,
        _ clock: () -> Instant
    ) -> Outcome? {
        let end = transaction.items.count > 16 ? clock() + limits.transactionTime : nil
        for index in transaction.items.indices {
            if let end, index.isMultiple(of: 16), clock() > end {
                let rejection = Rejection(
                    "transaction-too-long",
                    "\(index) of the \(transaction.items.count) actions have taken more than \(limits.transactionTime) of processor time, while others wait; nothing was committed, send fewer at once",
                    kind: .invalid)
                return .rejected(rejection, index: index)
            }
            (context.item.id, context.item.index) = (transaction.items[index].id, index)
            do throws(Rejection) {
                switch transaction.items[index].content {
                case .action(let action):
                    // The record of a refusal passes no middleware, which could refuse it, too.
                    if transaction.due != nil, let refused = action as? StoreRefused {
                        try pass(refused, context, from: steps.count)
                    } else {
                        try dispatch(action, of: transaction.items[index].entry, context)
                    }
                case .creator(let create):
                    if let action = try create(context.state) { try dispatch(action, context) }
                case .restore(let restoration):
                    guard restoration.base ?? before.version == before.version else { throw Restoration.moved }
                    guard let state = restoration.state else { continue }
                    context.restore(state)
                }
            } catch {
                return .rejected(error, index: index)
            }
            // A short action can make a long state, which is refused before it is compared, and before the next action.
            if knowsSize, let tooLarge = refusal(of: context.state, before) {
                return .rejected(tooLarge, index: index)
            }
        }
        return nil
    }

    /// A dry run that is not refused until now is refused for its schedule and its size as the commit would be.
    private func dryRun(
        _ transaction: Transaction, of client: String?, _ context: TransactionContext, _ next: Snapshot,
        at time: Timestamp
    ) throws -> Outcome {
        let step = try scheduleStep(transaction, of: client, context, next, at: time)
        if limits.commitBytesMax < .max {
            let bytesCount = try recordedBytes(in: context, transaction).count + patch.text.count
            try checkSize(bytesCount + (step?.recorded?.json.count ?? 0))
        }
        return .wouldCommit(isChange: !patch.isEmpty, patch: patch.text)
    }

    /// The bytes of a state as compact JSON; O(n) where nobody has counted them.
    private func size(of snapshot: Snapshot) throws -> Int {
        try snapshot.jsonBytes ?? snapshot.tree.encoded().count
    }

    private func refusal(of state: StateBox, _ before: Snapshot) -> Rejection? {
        guard let tree = state.document else { return nil }
        if let tooLarge = refusal(of: tree.bytesCount, before) { return tooLarge }
        let memory = tree.memoryBytes
        guard memory > limits.stateMemoryBytesMax, memory > before.memoryBytes else { return nil }
        return Rejection(
            "state-too-large",
            "the state would take \(memory) bytes of memory, and state_memory_bytes_max allows \(limits.stateMemoryBytesMax); nothing was committed, and what makes the state smaller is",
            kind: .tooLarge)
    }

    private func refusal(of bytesCount: Int, _ before: Snapshot) -> Rejection? {
        // Losing the error is right: the state before is a committed one, which can be encoded.
        guard bytesCount > limits.stateBytesMax, let old = try? size(of: before), bytesCount > old else { return nil }
        return Rejection(
            "state-too-large",
            "the state would have \(bytesCount) bytes of JSON, and state_bytes_max allows \(limits.stateBytesMax); nothing was committed, and what makes the state smaller is",
            kind: .tooLarge)
    }

    private func commit(
        _ transaction: Transaction, of client: String?, _ context: TransactionContext, _ next: Snapshot,
        by patch: inout JSONPatch, in turn: inout Turn, at time: Timestamp
    ) throws -> Receipt {
        let version = next.version
        let (isChange, changedPointers) = (!patch.isEmpty, patch.changedPointers)
        let ownID = transaction.form == .single ? transaction.firstID : nil
        let record = transaction.idempotency.map {
            KeyRecord(
                key: $0.key, fingerprint: $0.fingerprint, version: version, id: ownID ?? next.cursor.description,
                isChange: isChange,
                expiry: turn.historyTime.advanced(by: limits.idempotencyLifetime), client: client)
        }
        // Nearly every commit has one action: its entry has the array ready.
        let types =
            context.isRestored
            ? [Commit.restoreType]
            : context.entries.count == 1 ? context.entries[0].types : context.entries.map(\.type)
        let step =
            transaction.due != nil || context.mayChangeSchedule
            ? try scheduleStep(transaction, of: client, context, next, at: time) : nil
        let commit = Commit(
            next.cursor, time: time, of: transaction, ownID: ownID, types: types,
            action: try recordedBytes(in: context, transaction), patch: patch.takeText(),
            changedPointers: changedPointers, idempotency: record,
            schedule: step?.recorded)
        if commit.recordedBytesCount > limits.commitBytesMax { try checkSize(commit.recordedBytesCount) }
        if context.isRestored {
            domain.noteViewVersions(&next.viewVersions, changedPointers: changedPointers, at: version)
        } else {
            next.noteViewVersions(changedPointers: changedPointers, by: context.entries)
        }
        if let step { next.schedule = step.schedule }
        let followUps = context.followUps + (step?.followUps ?? [])
        let representation =
            try transaction.wantsRepresentation
            ? Self.representedPointers(changedPointers).map {
                ($0, try next.tree.selected($0.tokens[...]).bytes)
            } : nil
        latest = next
        var effects: [(entry: ActionEntry, action: any Action)] = []
        for index in context.entries.indices where context.entries[index].hasEffects {
            effects.append((context.entries[index], context.applied[index]))
        }
        turn.commits.append(commit)
        turn.consequences.append(
            Consequence(snapshot: next, followUps: followUps, effects: effects))
        if !effects.isEmpty || !followUps.isEmpty { turn.hasConsequences = true }
        if let record { ledger.insert(record) }
        return Receipt(
            next.cursor, ownID: ownID, isChange: isChange, isReplay: false, types: types,
            representation: representation, scheduled: step?.added ?? [])
    }

    private func checkSize(_ bytesCount: Int) throws(Rejection) {
        guard bytesCount > limits.commitBytesMax else { return }
        throw Rejection(
            "commit-too-large",
            "the commit has \(bytesCount) bytes, and the journal takes \(limits.commitBytesMax) at once; nothing was committed, send less at once",
            kind: .tooLarge)
    }

    private func scheduleStep(
        _ transaction: Transaction, of client: String?, _ context: TransactionContext, _ next: Snapshot,
        at time: Timestamp
    ) throws -> ScheduleStep? {
        guard transaction.due != nil || context.mayChangeSchedule else { return nil }
        var step = ScheduleStep(
            version: next.cursor.version, cursor: next.cursor, time: time, root: transaction.causation?.root,
            chain: transaction.causation?.chain,
            client: transaction.subject == nil ? client ?? transaction.due?.client : nil, schedule: next.schedule)
        if let due = transaction.due {
            step.remove(due.name, context.applied.first is StoreRefused ? .refused : .fired)
        }
        if let restored = context.restored { step.restore(restored.schedule) }
        for request in context.scheduling.all { try step.make(request, of: domain) }
        let most = limits.scheduleMax
        // Under a limit that was lowered, what does not grow goes on.
        guard step.schedule.count <= max(most, next.schedule.count),
            step.schedule.bytesCount <= max(limits.scheduleBytesMax, next.schedule.bytesCount)
        else {
            throw Rejection(
                "schedule-full",
                "this server allows \(most) scheduled actions in \(limits.scheduleBytesMax) bytes, and there is no room for this one; nothing was committed"
            )
        }
        if !context.isRestored, let owner = ScheduleKey(ownerOf: transaction.subject, from: step.client) {
            try checkShare(of: owner, step.schedule, next.schedule)
        }
        return step
    }

    /// Refuses what gives one client more than a quarter of the schedule, so that there is room for others.
    private func checkShare(of owner: ScheduleKey, _ new: ActionSchedule, _ old: ActionSchedule) throws(Rejection) {
        let (share, before) = (new.share(of: owner), old.share(of: owner))
        let (most, bytesMax) = (limits.scheduleMax / 4, limits.scheduleBytesMax / 4)
        // One action is no hoard, however low the limits are.
        guard share.count > 1,
            share.count > max(most, before.count) || share.bytesCount > max(bytesMax, before.bytesCount)
        else { return }
        throw Rejection(
            "schedule-full",
            "this server allows one client a quarter of what is scheduled, \(most) actions in \(bytesMax) bytes, and this client has so much; nothing was committed",
            kind: .tooMany)
    }
}
