internal import Dispatch
internal import Synchronization
internal import Threads

/// A turn whose commits may not be durable yet, an object without the type of the state: Swift looks up the metadata of
/// a generic element type at each access to a list.
final class ComputedTurn: Sendable {
    let pending: [PendingTransaction]
    let result: Turn

    init(pending: [PendingTransaction], result: consuming Turn) { (self.pending, self.result) = (pending, result) }

    var before: Snapshot { result.before }
    var commits: [Commit] { result.commits }
    var isLong: Bool { pending.contains { $0.transaction.isLong } || commits.contains { $0.patch.count > 65_536 } }

    var refusesSome: Bool {
        result.outcomes.contains { outcome in
            switch outcome {
            case .committed, .full, .draining, .wouldCommit: false
            default: true
            }
        }
    }
}

/// The turns that have not landed, in order; they count as waiting, so the capacity of the mailbox bounds them.
struct TurnsInFlight: Sendable {
    /// Another writer may append first so often before the store refuses the turns.
    private static let refusalsMax = 100

    private var waiting: [ComputedTurn] = []
    private var landingCount = 0
    private var isActive = false
    private var refusals = 0
    private(set) var hasMissedForeignCommits = false

    var isEmpty: Bool { count == 0 }

    var count: Int { waiting.count + landingCount }

    /// True where the caller has to start the landing.
    mutating func append(_ turn: ComputedTurn) -> Bool {
        waiting.append(turn)
        defer { isActive = true }
        return !isActive
    }

    /// The turns that land next, or nil, which ends the landing.
    mutating func beginLanding() -> [ComputedTurn]? {
        guard !waiting.isEmpty else {
            isActive = false
            return nil
        }
        landingCount = waiting.count
        return exchange(&waiting, with: [])
    }

    mutating func endLanding() { (landingCount, refusals) = (0, 0) }

    mutating func takeBack() -> [ComputedTurn] {
        landingCount = 0
        return exchange(&waiting, with: [])
    }

    /// Counts a refusal by the journal; false after too many in a row.
    mutating func mayComputeAgain() -> Bool {
        refusals += 1
        guard refusals > Self.refusalsMax else { return true }
        refusals = 0
        return false
    }

    /// Whether the commits of another writer may be adopted now; where turns are in flight, they are adopted afterwards.
    mutating func mayAdoptForeignCommits() -> Bool {
        if !isEmpty { hasMissedForeignCommits = true }
        return isEmpty
    }

    mutating func takeMissedForeignCommits() -> Bool {
        guard isEmpty, hasMissedForeignCommits else { return false }
        hasMissedForeignCommits = false
        return true
    }
}

/// A thread of its own for the landing of turns: a dispatch queue often takes another thread, whose caches know nothing
/// of the journal, and a single client that writes waits for that.
package final class LandingThread: Sendable {
    private final class Work: Sendable {
        let bodies = Mutex<[@Sendable () -> Void]>([])
        /// Counts the bodies; one more than there are is the end.
        let count = DispatchSemaphore(value: 0)

        func runAll() {
            while true {
                count.wait()
                guard let body = bodies.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
                body()
            }
        }
    }

    private let work = Work()
    private let isRunning = Atomic(false)

    package init() {}

    deinit { work.count.signal() }

    /// Runs a function in order, on a dispatch queue where there are no more threads; one thread at a time calls this.
    package func run(_ body: @escaping @Sendable () -> Void) {
        guard isRunning.load(ordering: .relaxed) || start() else {
            return DispatchQueue.global().async(execute: body)
        }
        work.bodies.withLock { $0.append(body) }
        work.count.signal()
    }

    private func start() -> Bool {
        guard let thread = try? SystemThread({ [work] in work.runAll() }) else { return false }
        thread.detach()
        isRunning.store(true, ordering: .relaxed)
        return true
    }
}
