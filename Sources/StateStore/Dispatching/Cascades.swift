package struct Causation: Sendable, Equatable {
    /// The ID of the commit that caused it, or nil if a middleware swallowed the action.
    package let cause: String?
    package let root: String?
    /// The root's version, as a client may use an ID twice; without such a commit, a number that no version reaches.
    let rootVersion: Version
    /// How many commits lie between the root and this one, this one included.
    let depth: Int
    var subject: String?
    /// The scheduled actions that have led to the commit, the one that is due included; nil for none.
    var chain: ScheduledAction.Chain?
}

extension Causation {
    var rootName: String { root ?? "an action that a middleware swallowed" }

    init(foreign commit: Commit) {
        self.init(
            cause: commit.id, root: commit.root ?? commit.id, rootVersion: commit.version, depth: 1,
            subject: commit.by)
    }
}

/// The consequences of a commit: all actions that subscribers, middleware and effects dispatched because of it.
public struct CascadeReport: Sendable {
    /// A commit in the cascade.
    public struct Caused: Sendable {
        /// Its version.
        public let version: Version
        /// Its ID.
        public let id: String
        /// The ID of the commit that caused it; empty where a middleware swallowed the action that did.
        public let cause: String
        /// The types of its actions, in order.
        public let types: [String]
        /// Whether it changed the state.
        public let isChange: Bool
    }

    /// A follow-up that was not committed.
    public struct Refused: Sendable {
        /// The type of the action; for an atomic batch, the types separated by commas.
        public let type: String
        /// The ID of the commit that caused it; empty where a middleware swallowed the action that did.
        public let cause: String
        /// The reason as a stable name for programs.
        public let code: String
        /// The reason as a sentence for people.
        public let detail: String
    }

    /// How many commits, and how many refusals, a report lists; the report only counts further commits.
    static let listedMax = 1000

    /// The commits in order, at most 1,000.
    public internal(set) var caused: [Caused] = []
    /// How many commits there were.
    public internal(set) var causedCount = 0
    /// The refused follow-ups, at most 1,000.
    public internal(set) var refused: [Refused] = []
    /// Whether no follow-up waits and no effect runs.
    public internal(set) var isComplete = false

    package init(isComplete: Bool = false) { self.isComplete = isComplete }
}

/// The cascades that are not complete.
///
/// A commit that causes nothing has no entry; a swallowed action whose middleware dispatched others begins a cascade,
/// too.
struct Cascades: Sendable {
    typealias Watcher = @Sendable (CascadeReport) -> Void

    private struct Running {
        var pending = 0
        var actions = 0
        var report = CascadeReport()
        var watchers: [(id: UInt64, watcher: Watcher)] = []
    }

    private var running: [Version: Running] = [:]
    private var uncommittedCount: Version = 0
    private let limits: StoreLimits

    init(limits: StoreLimits) {
        self.limits = limits
    }

    var isEmpty: Bool { running.isEmpty }

    /// The rejection of a follow-up that is over the budget of its cascade; nil for one that now counts as pending.
    mutating func register(_ causation: Causation, actions: Int) -> Rejection? {
        let spent = running[causation.rootVersion]?.actions ?? 0
        if causation.depth > limits.cascadeDepthMax {
            return Rejection(
                "cascade-over-budget",
                "the cascade of \(causation.rootName) is \(limits.cascadeDepthMax) commits deep, which is its budget: something answers every change with another action"
            )
        }
        if spent + actions > limits.cascadeActionsMax {
            return Rejection(
                "cascade-over-budget",
                "the cascade of \(causation.rootName) has dispatched \(spent) actions, which is its budget of \(limits.cascadeActionsMax)"
            )
        }
        running[causation.rootVersion, default: Running()].pending += 1
        running[causation.rootVersion]?.actions += actions
        return nil
    }

    mutating func causationWithoutCommit(subject: String?) -> Causation {
        uncommittedCount += 1
        return Causation(cause: nil, root: nil, rootVersion: .max - uncommittedCount, depth: 1, subject: subject)
    }

    mutating func begin(_ causation: Causation) {
        running[causation.rootVersion, default: Running()].pending += 1
    }

    mutating func note(_ causation: Causation, caused commit: CascadeReport.Caused) {
        running[causation.rootVersion]?.report.causedCount += 1
        guard running[causation.rootVersion]?.report.caused.count ?? 0 < CascadeReport.listedMax else { return }
        running[causation.rootVersion]?.report.caused.append(commit)
    }

    mutating func note(_ causation: Causation, refused: CascadeReport.Refused) {
        guard running[causation.rootVersion]?.report.refused.count ?? 0 < CascadeReport.listedMax else { return }
        running[causation.rootVersion]?.report.refused.append(refused)
    }

    /// The watchers and the complete report, where it was the last pending one of its cascade.
    mutating func end(_ causation: Causation) -> (watchers: [Watcher], report: CascadeReport)? {
        guard var cascade = running[causation.rootVersion] else { return nil }
        cascade.pending -= 1
        guard cascade.pending == 0 else {
            running[causation.rootVersion] = cascade
            return nil
        }
        running[causation.rootVersion] = nil
        cascade.report.isComplete = true
        return (cascade.watchers.map(\.watcher), cascade.report)
    }

    /// False where the cascade is complete already, or the commit has caused nothing.
    mutating func watch(_ root: Version, as id: UInt64 = 0, _ watcher: @escaping Watcher) -> Bool {
        guard running[root] != nil else { return false }
        running[root]?.watchers.append((id, watcher))
        return true
    }

    /// A cascade may run for long, and a client come back often; O(n) in the number of watchers of the cascade.
    mutating func stopWatching(_ root: Version, as id: UInt64) {
        running[root]?.watchers.removeAll { $0.id == id }
    }

    func currentReport(of root: Version) -> CascadeReport? { running[root]?.report }
}
