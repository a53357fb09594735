internal import StateJSON
internal import Synchronization

/// A store in memory that began with a state of a recorded history, and what has become of the actions behind it.
///
/// Today's reducers run on the recorded actions; middleware, follow-ups and effects do not, because what they dispatched is
/// recorded. IDs that clients gave and times are those of the record; the epoch and the versions are the fork's own.
package struct Fork: Sendable {
    /// How many bytes of memory a byte of JSON takes as a tree, at most.
    static let treeFactor = 90
    /// How many bytes of memory a byte of a state's JSON takes in a store, but for a tree with many short values.
    fileprivate static let stateFactor = 8

    package struct Insertion: Sendable {
        /// The cursor of the recorded commit behind which it comes.
        package var after: Cursor
        package var type: String
        package var id: String?
        /// The action as it is recorded, UTF-8 JSON.
        package var action: [UInt8]

        package init(after: Cursor, type: String, id: String?, action: [UInt8]) {
            (self.after, self.type, self.id, self.action) = (after, type, id, action)
        }
    }

    package struct Refusal: Sendable {
        package var id: String
        /// The recorded version; nil for an insertion.
        package var version: Version?
        package var type: String
        package var code: String?
        package var detail: String
    }

    package struct NoRoom: Error {}

    /// Runs a part of the history, as long as the function says that it may; nil if there is more to run.
    ///
    /// One thread at a time calls it, and not again after the end.
    package typealias Advance = @Sendable (_ mayGoOn: () -> Bool) throws -> Fork?

    package let store: UntypedStore
    package let appliedCount: Int
    package let skippedCount: Int
    /// The first hundred.
    package let refusals: [Refusal]
    package let refusalsCount: Int
}

private struct ForkMaking {
    /// The state to begin with, as ``SavedState`` has it, and its cursor in the recorded history.
    let state: [UInt8]
    let start: Cursor
    let last: Version
    var replay: Replay
    var position: Version
    var skipped: Set<ExactText>
    var insertions: ArraySlice<Fork.Insertion>
    var time: Timestamp
    let mark: ReductionMark?
    let hasRoom: @Sendable (Int) -> Bool
    let epoch = Epoch.random()
    var result: (applied: Int, skipped: Int, refusals: [Fork.Refusal], refused: Int) = (0, 0, [], 0)
    var commits: [Commit] = []
    var page: ArraySlice<Commit> = []
    var ids: [ExactText: String] = [:]

    private static let refusalsMax = 100

    mutating func advance(while mayGoOn: () -> Bool, _ read: (Version) throws -> [Commit]) throws -> Bool {
        while mayGoOn() {
            if let next = insertions.first, next.after.version <= position {
                insertions.removeFirst()
                try insert(next)
                continue
            }
            if page.isEmpty, position < last { page = try read(position)[...] }
            guard let commit = page.popFirst(), commit.version <= last else { return true }
            try take(commit)
            position = commit.version
        }
        return false
    }

    func fork(of store: UntypedStore) -> Fork {
        let version = start.version
        let journal = MemoryJournal(state, version: version, commits: commits, hasRoom: hasRoom)
        let forked = store.forked(
            .init(
                state: replay.state, cursor: Cursor(epoch, version + Version(commits.count)), schedule: replay.schedule),
            journal, oldest: version)
        return Fork(
            store: forked, appliedCount: result.applied, skippedCount: result.skipped, refusals: result.refusals,
            refusalsCount: result.refused)
    }

    private mutating func take(_ recorded: Commit) throws(Fork.NoRoom) {
        time = recorded.time
        let names = [recorded.id] + recorded.clientIDs + [recorded.cause].compactMap(\.self)
        guard !names.contains(where: { skipped.contains(ExactText($0)) }) else {
            skipped.insert(ExactText(recorded.id))
            return result.skipped += 1
        }
        try run(recorded, version: recorded.version)
    }

    private mutating func insert(_ insertion: Fork.Insertion) throws(Fork.NoRoom) {
        let commit = Commit(
            version: 0, time: time, id: insertion.id ?? "", types: [insertion.type], action: insertion.action,
            patch: [], clientIDs: insertion.id.map { [$0] } ?? [])
        try run(commit, version: nil)
    }

    private mutating func run(_ recorded: Commit, version: Version?) throws(Fork.NoRoom) {
        let type = recorded.types.first ?? ""
        let identity = TransactionIdentity(.content, ContentHash(recorded.action))
        if let refused = mark?.begin(.init(identity: identity, type: type, name: recorded.id)) {
            let rejection = Rejection.quarantined(refused.name)
            return refuse(recorded, version, type, rejection.code, rejection.detail)
        }
        defer { mark?.end() }
        let cursor = Cursor(epoch, start.version + Version(commits.count) + 1)
        let (cause, root) = (recorded.cause.map(ownID), recorded.root.map(ownID))
        let commit: Commit
        do throws(HistoryFault) {
            // A recorded action is not refused for its work.
            commit = try replay.take(recorded, version == nil ? WorkMeter() : nil) {
                [epoch = start.epoch] schedule in
                // A commit without a name of its own keeps the recorded one, by which later commits name it.
                ScheduleStep(
                    version: cursor.version, cursor: version.map { Cursor(epoch, $0) } ?? cursor, time: recorded.time,
                    root: root, chain: (recorded.schedule?.ended?.name).flatMap { schedule[$0]?.chain.next },
                    schedule: schedule, placesLeft: version == nil ? ScheduleStep.placesMax : .max)
            }
        } catch {
            return refuse(recorded, version, error.types.first ?? "", error.rejectionCode, error.detail)
        }
        let isOwn = recorded.clientIDs.contains { JSONPointer.sameBytes($0, recorded.id) }
        if !isOwn { ids[ExactText(recorded.id)] = cursor.description }
        let made = Commit(
            version: cursor.version, time: commit.time, id: isOwn ? commit.id : cursor.description,
            cause: cause, root: root, by: commit.by, trace: commit.trace,
            types: commit.types, action: commit.action, patch: commit.patch,
            changedPointers: commit.changedPointers, clientIDs: commit.clientIDs, schedule: replay.changes)
        guard hasRoom(made.weight) else { throw Fork.NoRoom() }
        commits.append(made)
        result.applied += 1
    }

    private func ownID(_ recorded: String) -> String { ids[ExactText(recorded)] ?? recorded }

    private mutating func refuse(
        _ recorded: Commit, _ version: Version?, _ type: String, _ code: String?, _ detail: String
    ) {
        result.refused += 1
        guard result.refusals.count < Self.refusalsMax else { return }
        result.refusals.append(
            Fork.Refusal(id: recorded.id, version: version, type: type, code: code, detail: detail))
    }
}

extension UntypedStore {
    /// Begins to make a store in memory of a part of a history, which may leave out and add actions.
    ///
    /// The cost is O(n) in the size of the state; the returned function costs what each commit costs that it computes again.
    ///
    /// - Parameters:
    ///   - state: the state to begin with, as ``SavedState`` has it, at the cursor `start` of the recorded history.
    ///   - last: the version of the last recorded commit to run.
    ///   - skipped: the IDs of the commits to leave out, with all that they have caused.
    ///   - insertions: what to add, in the order of the versions.
    ///   - time: the time of actions that are inserted before the first recorded commit.
    ///   - hasRoom: takes room for bytes, and returns whether there is any.
    package func fork(
        _ state: [UInt8], at start: Cursor, through last: Version, skipping skipped: [String] = [],
        inserting insertions: [Fork.Insertion] = [], time: Timestamp,
        hasRoom: @escaping @Sendable (_ bytes: Int) -> Bool,
        commits: @escaping @Sendable (_ after: Version) throws -> [Commit]
    ) throws -> Fork.Advance {
        guard hasRoom(Fork.stateFactor * state.count) else { throw Fork.NoRoom() }
        let replay = try Replay(domain, from: state, version: start.version)
        let more = (replay.state.document?.memoryBytes ?? 0) - Fork.stateFactor * state.count
        guard more <= 0 || hasRoom(more) else { throw Fork.NoRoom() }
        let making = Mutex(
            ForkMaking(
                state: state, start: start, last: last, replay: replay, position: start.version,
                skipped: Set(skipped.map { ExactText($0) }), insertions: insertions[...], time: time,
                mark: mark?.another(), hasRoom: hasRoom))
        return { mayGoOn in
            try making.withLock { making in
                try making.advance(while: mayGoOn, commits) ? making.fork(of: self) : nil
            }
        }
    }

    /// A store with the same domain and middleware that runs no effect.
    fileprivate func forked(_ origin: Origin, _ journal: MemoryJournal, oldest: Version) -> UntypedStore {
        var limits = limits
        limits.effectsMax = 0
        limits.historyCommitsMax = min(limits.historyCommitsMax, 1000)
        limits.historyBytesMax = min(limits.historyBytesMax, 1 << 20)
        return UntypedStore(
            domain: domain, middleware: steps, limits: limits, origin: origin, now: now, journal: journal,
            watchLimits: WatchLimits(
                watchesMax: 1000, watchesPerClientMax: 100, memory: hub.storage.withLock { $0.limits.memory }),
            journalOldest: oldest, clock: monotonicNow, processorTime: processorTime, mark: mark?.another(),
            queues: .dispatch(slow: hub.queues.slow))
    }
}
