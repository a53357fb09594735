internal import DequeModule
internal import StateHTTP
internal import StateStore
internal import Synchronization
internal import Threads

struct RememberedTokens: Sendable {
    private struct Entry {
        /// Where a stream or a connection holds the access, it has to end in time, even if no new request finds it.
        weak var access: Access?
        var held: Access?
        var key: VerificationKey
        var end: Timestamp
    }

    private var entries: [[UInt8]: Entry] = [:]
    private var order: Deque<[UInt8]> = []
    private(set) var earliestEnd = Timestamp(milliseconds: .max)
    private let heldMax: Int
    private var ended: [[UInt8]: Timestamp] = [:]
    private var endedOrder: Deque<[UInt8]> = []

    init(heldMax: Int = 10_000) { self.heldMax = heldMax }

    var count: Int { entries.count }

    func access(_ digest: [UInt8], at now: Timestamp) -> Access? {
        guard let entry = entries[digest], now < entry.end else { return nil }
        return entry.access
    }

    func hasEnded(_ digest: [UInt8], at now: Timestamp) -> Bool { ended[digest].map { $0 <= now } ?? false }

    mutating func noteEnded(_ digest: [UInt8], _ end: Timestamp) {
        if ended.updateValue(end, forKey: digest) == nil { endedOrder.append(digest) }
        if endedOrder.count > heldMax, let oldest = endedOrder.popFirst() { ended[oldest] = nil }
    }

    mutating func insert(_ access: Access, _ digest: [UInt8], key: VerificationKey, end: Timestamp) {
        if entries[digest]?.held == nil { order.append(digest) }
        entries[digest] = Entry(access: access, held: access, key: key, end: end)
        earliestEnd = min(earliestEnd, end)
        if order.count > heldMax, let oldest = order.popFirst() { entries[oldest]?.held = nil }
        if entries.count > 2 * heldMax + 64, entries.count.isMultiple(of: 64) {
            entries = entries.filter { $0.value.access != nil }
        }
    }

    /// Removes the accesses that have ended by a time; O(n) where there are any.
    mutating func removeEnded(at now: Timestamp) -> [Access] {
        guard earliestEnd <= now else { return [] }
        for (digest, entry) in entries where entry.end <= now { noteEnded(digest, entry.end) }
        return remove { $0.end <= now }
    }

    mutating func removeAll(except keys: [VerificationKey]) -> [Access] {
        let keys = Set(keys)
        return remove { !keys.contains($0.key) }
    }

    private mutating func remove(where isOver: (Entry) -> Bool) -> [Access] {
        var removed: [Access] = []
        entries = entries.filter { _, entry in
            guard isOver(entry) else { return entry.access != nil }
            if let access = entry.access { removed.append(access) }
            return false
        }
        order.removeAll { entries[$0]?.held == nil }
        earliestEnd = entries.values.map(\.end).min() ?? Timestamp(milliseconds: .max)
        return removed
    }
}

/// Runs one verification at a time, so that unknown tokens occupy at most one processor; any thread may call it.
final class Verifications: Sendable {
    private struct State {
        var waiting = ClientTurns<@Sendable () async -> Void>()
        var isRunning = false
    }

    private let state = Mutex(State())
    /// A waiting one is a request that waits with its head and its body.
    static let waitingMax = 4096

    func run(for client: String, _ verification: @escaping @Sendable () async -> Void) -> Bool {
        let (isTaken, mustStart) = state.withLock { state in
            guard state.waiting.count < Self.waitingMax else { return (false, false) }
            state.waiting.append(verification, of: client)
            defer { state.isRunning = true }
            return (true, !state.isRunning)
        }
        if mustStart { Task { while let verification = next() { await verification() } } }
        return isTaken
    }

    private func next() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            let verification = state.waiting.next()
            if verification == nil { state.isRunning = false }
            return verification
        }
    }
}
