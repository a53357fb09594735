/// Where a follow-up comes from.
package struct Causation: Sendable, Equatable {
    /// The ID of the commit that caused it.
    package let cause: String
    /// The ID of the commit that began the cascade.
    package let root: String
    /// The version of that commit: an ID of a client's own may be used twice, a version is not.
    let rootVersion: Version
    /// How many commits lie between the root and this one, this one included.
    let depth: Int
}

extension Causation {
    /// Of what a commit of another writer causes here.
    init(foreign commit: Commit) {
        self.init(cause: commit.id, root: commit.root ?? commit.id, rootVersion: commit.version, depth: 1)
    }
}

/// What a commit has caused: everything that subscribers, middleware and effects dispatched because of it, however late.
public struct CascadeReport: Sendable {
    /// A commit that was caused.
    public struct Caused: Sendable {
        /// Its version.
        public let version: Version
        /// Its ID.
        public let id: String
        /// The ID of the commit that caused it.
        public let cause: String
        /// The types of its actions, in order.
        public let types: [String]
        /// Whether it changed the state.
        public let isChange: Bool
    }

    /// A follow-up that was not committed.
    public struct Refused: Sendable {
        /// The type of the action, of an atomic batch the types with commas between.
        public let type: String
        /// The ID of the commit that caused it.
        public let cause: String
        /// Why, for programs.
        public let code: String
        /// Why, for people.
        public let detail: String
    }

    /// How many commits and refusals are listed; the rest is only counted.
    public static let listedMax = 1000

    /// The commits in order, at most ``listedMax``.
    public internal(set) var caused: [Caused] = []
    /// How many commits there were.
    public internal(set) var causedCount = 0
    /// What was refused, at most ``listedMax``.
    public internal(set) var refused: [Refused] = []
    /// Whether nothing more can come.
    public internal(set) var isComplete = false

    /// An empty report.
    public init() {}
}

/// The cascades that are not complete: how much of each is still under way, and what waits for its end.
///
/// A root that causes nothing never stands here.
struct Cascades: Sendable {
    typealias Watcher = @Sendable (CascadeReport) -> Void

    private struct Running {
        /// Follow-ups that wait for their turn and effects that run.
        var pending = 0
        /// Follow-ups ever admitted.
        var actions = 0
        var report = CascadeReport()
        var watchers: [Watcher] = []
    }

    private var running: [Version: Running] = [:]
    private let limits: StoreLimits

    init(limits: StoreLimits) {
        self.limits = limits
    }

    /// Admits a follow-up of some actions, unless its cascade has used up its budget.
    mutating func admit(_ causation: Causation, actions: Int) -> Rejection? {
        let spent = running[causation.rootVersion]?.actions ?? 0
        if causation.depth > limits.cascadeDepthMax {
            return Rejection(
                "cascade-over-budget",
                "the cascade of \(causation.root) is \(limits.cascadeDepthMax) commits deep, which is its budget: something answers every change with another action"
            )
        }
        if spent + actions > limits.cascadeActionsMax {
            return Rejection(
                "cascade-over-budget",
                "the cascade of \(causation.root) has dispatched \(spent) actions, which is its budget of \(limits.cascadeActionsMax)"
            )
        }
        running[causation.rootVersion, default: Running()].pending += 1
        running[causation.rootVersion]?.actions += actions
        return nil
    }

    /// Counts an effect as under way.
    mutating func begin(_ causation: Causation) {
        running[causation.rootVersion, default: Running()].pending += 1
    }

    /// Notes what a follow-up has come to.
    mutating func note(_ causation: Causation, caused commit: CascadeReport.Caused) {
        running[causation.rootVersion]?.report.causedCount += 1
        guard running[causation.rootVersion]?.report.caused.count ?? 0 < CascadeReport.listedMax else { return }
        running[causation.rootVersion]?.report.caused.append(commit)
    }

    /// Notes that a follow-up was refused.
    mutating func note(_ causation: Causation, refused: CascadeReport.Refused) {
        guard running[causation.rootVersion]?.report.refused.count ?? 0 < CascadeReport.listedMax else { return }
        running[causation.rootVersion]?.report.refused.append(refused)
    }

    /// Counts a follow-up or an effect as over.
    ///
    /// - Returns: when it was the last, whom to tell what.
    mutating func end(_ causation: Causation) -> (watchers: [Watcher], report: CascadeReport)? {
        guard var cascade = running[causation.rootVersion] else { return nil }
        cascade.pending -= 1
        guard cascade.pending == 0 else {
            running[causation.rootVersion] = cascade
            return nil
        }
        running[causation.rootVersion] = nil
        cascade.report.isComplete = true
        return (cascade.watchers, cascade.report)
    }

    /// Calls the watcher when the cascade of a commit is complete; false when nothing of it is under way.
    mutating func watch(_ root: Version, _ watcher: @escaping Watcher) -> Bool {
        guard running[root] != nil else { return false }
        running[root]?.watchers.append(watcher)
        return true
    }

    /// What the cascade of a commit has come to so far, or nil when nothing of it is under way.
    func report(of root: Version) -> CascadeReport? { running[root]?.report }
}
