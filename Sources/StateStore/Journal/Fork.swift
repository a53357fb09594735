internal import StateJSON

/// A store in memory that began with a state of a recorded history, and what has become of the actions behind it.
///
/// Today's reducers run on the recorded actions; middleware, follow-ups and effects do not, because what they dispatched is
/// recorded. IDs that clients gave and times are those of the record; the epoch and the versions are the fork's own.
package struct Fork: Sendable {
    /// What a fork is made of.
    package struct Source: Sendable {
        /// An action that was not recorded.
        package struct Insertion: Sendable {
            /// The version of the recorded commit behind which it comes.
            package var after: Version
            package var type: String
            package var id: String?
            /// The action as it is recorded, UTF-8 JSON.
            package var action: [UInt8]

            package init(after: Version, type: String, id: String?, action: [UInt8]) {
                self.after = after
                self.type = type
                self.id = id
                self.action = action
            }
        }

        /// The state to begin with, as UTF-8 JSON, and its cursor in the recorded history.
        package var state: [UInt8]
        package var cursor: Cursor
        /// The version of the last recorded commit to run.
        package var last: Version
        /// The IDs of the commits to leave out, with all that they have caused.
        package var skipped: [String]
        /// In the order of their versions.
        package var insertions: [Insertion]
        /// The time of actions that are inserted before the first recorded commit.
        package var time: Timestamp

        package init(
            state: [UInt8], cursor: Cursor, last: Version, skipped: [String], insertions: [Insertion], time: Timestamp
        ) {
            self.state = state
            self.cursor = cursor
            self.last = last
            self.skipped = skipped
            self.insertions = insertions
            self.time = time
        }
    }

    /// An action that today's domain does not take in the state of the fork.
    package struct Refusal: Sendable {
        /// Its ID in the recorded history, or the one of an insertion.
        package var id: String
        /// The recorded version; nil for an insertion.
        package var version: Version?
        package var type: String
        /// The code of the reducer's rejection; nil where the action does not fit the domain.
        package var code: String?
        package var detail: String
    }

    /// There is no room for the fork.
    package struct NoRoom: Error {}

    package let store: any AnyStore
    package private(set) var appliedCount = 0
    package private(set) var skippedCount = 0
    /// The first hundred.
    package private(set) var refusals: [Refusal] = []
    package private(set) var refusalsCount = 0

    private static let refusalsMax = 100
}

extension Fork {
    /// Computes the commits of a fork, one after the other.
    private struct Making<State: StateType> {
        var replay: Replay<State>
        var result: (applied: Int, skipped: Int, refusals: [Refusal], refused: Int) = (0, 0, [], 0)
        var commits: [Commit] = []
        var time: Timestamp
        private let epoch: Epoch
        private let start: Version
        private var skipped: Set<ExactText>
        /// The IDs of the fork's commits, by those in the recorded history, where they differ.
        private var ids: [ExactText: String] = [:]

        init(_ source: Source, _ domain: CompiledDomain<State>, _ epoch: Epoch) throws(JSONFault) {
            replay = try Replay(domain, from: source.state, version: source.cursor.version)
            skipped = Set(source.skipped.map { ExactText($0) })
            (time, self.epoch, start) = (source.time, epoch, source.cursor.version)
        }

        /// Runs a recorded commit, or leaves it out.
        mutating func take(_ recorded: Commit) {
            time = recorded.time
            let names = [recorded.id] + recorded.clientIDs + [recorded.cause].compactMap(\.self)
            guard !names.contains(where: { skipped.contains(ExactText($0)) }) else {
                skipped.insert(ExactText(recorded.id))
                return result.skipped += 1
            }
            run(recorded, version: recorded.version)
        }

        mutating func insert(_ insertion: Source.Insertion) {
            let commit = Commit(
                version: 0, time: time, id: insertion.id ?? "", types: [insertion.type], action: insertion.action,
                patch: [], clientIDs: insertion.id.map { [$0] } ?? [])
            run(commit, version: nil)
        }

        private mutating func run(_ recorded: Commit, version: Version?) {
            do throws(HistoryFault) {
                let commit = try replay.take(recorded)
                let cursor = Cursor(epoch, start + Version(commits.count) + 1)
                let isOwn = recorded.clientIDs.contains { JSONPointer.sameBytes($0, recorded.id) }
                if !isOwn { ids[ExactText(recorded.id)] = cursor.description }
                let id = { [ids] (text: String) in ids[ExactText(text)] ?? text }
                commits.append(
                    Commit(
                        version: cursor.version, time: commit.time, id: isOwn ? commit.id : cursor.description,
                        cause: commit.cause.map(id), root: commit.root.map(id), by: commit.by, trace: commit.trace,
                        types: commit.types, action: commit.action, patch: commit.patch,
                        changedPointers: commit.changedPointers, clientIDs: commit.clientIDs))
                result.applied += 1
            } catch {
                result.refused += 1
                guard result.refusals.count < refusalsMax else { return }
                result.refusals.append(
                    Refusal(
                        id: recorded.id, version: version, type: error.types.first ?? "", code: error.rejectionCode,
                        detail: error.detail))
            }
        }
    }

    /// How many bytes of memory a byte of a state's JSON takes in a store, at most.
    private static let stateFactor = 8

    fileprivate init<State>(
        _ source: Source, of store: Store<State>, hasRoom: @escaping @Sendable (Int) -> Bool,
        commits: (Version) throws -> [Commit]
    ) throws {
        guard hasRoom(Self.stateFactor * source.state.count) else { throw NoRoom() }
        let epoch = Epoch.random()
        var making = try Making(source, store.domain, epoch)
        var (position, insertions, counted) = (source.cursor.version, source.insertions[...], 0)
        func insert(through version: Version) {
            while let next = insertions.first, next.after <= version {
                making.insert(next)
                insertions.removeFirst()
            }
        }
        insert(through: position)
        while position < source.last {
            let page = try commits(position)
            guard !page.isEmpty else { break }
            for commit in page where commit.version <= source.last {
                making.take(commit)
                insert(through: commit.version)
                position = commit.version
            }
            let new = making.commits[counted...].reduce(0) { $0 + $1.weight }
            counted = making.commits.count
            guard hasRoom(new) else { throw NoRoom() }
            if page.last?.version ?? 0 > source.last { break }
        }
        let version = source.cursor.version
        let journal = MemoryJournal(source.state, version: version, commits: making.commits, hasRoom: hasRoom)
        self.store = store.forked(
            making.replay.state, at: Cursor(epoch, version + Version(making.commits.count)), journal, oldest: version)
        (appliedCount, skippedCount, refusals, refusalsCount) = making.result
    }
}

extension Store {
    package func fork(
        _ source: Fork.Source, hasRoom: @escaping @Sendable (_ bytes: Int) -> Bool,
        commits: (_ after: Version) throws -> [Commit]
    ) throws -> Fork {
        try Fork(source, of: self, hasRoom: hasRoom, commits: commits)
    }

    /// A store with the same domain and middleware that runs no effect.
    fileprivate func forked(_ state: State, at cursor: Cursor, _ journal: MemoryJournal, oldest: Version) -> Store {
        var limits = limits
        limits.effectsMax = 0
        limits.historyCommitsMax = min(limits.historyCommitsMax, 1000)
        limits.historyBytesMax = min(limits.historyBytesMax, 1 << 20)
        return Store(
            domain: domain, middleware: middleware, limits: limits, origin: Origin(state: state, cursor: cursor),
            now: now, journal: journal, watchLimits: WatchLimits(watchesMax: 1000, watchesPerClientMax: 100),
            journalOldest: oldest, clock: monotonicNow, processorTime: processorTime)
    }
}
