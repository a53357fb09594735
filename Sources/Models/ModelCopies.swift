internal import StateJSON
internal import StateStore
internal import Synchronization

/// A reducer or a view runs on a copy of exactly the state that its caller names, or one that follows to it by the
/// difference; the state in the store leads, and what an engine has is never read back.
final class ModelCopies: Sendable {
    private struct Copy {
        var engine: Model
        var tree: JSONTree
        var usesCount = 0
        var counted = ContinuousClock.now
    }

    private struct Pool {
        /// The last used copy is at the end.
        var free: [Copy]
        var usedCount = 0
    }

    /// Enough for the turns, for the fan-out and two readers beside them.
    private static let keptMax = 4
    /// From this size on, a difference is worth another engine.
    private static let farBytes = 1 << 18
    private static let usesBetweenLooks = 1024
    /// The engine walks its memory to count it, which takes some milliseconds.
    private static let timeBetweenCounts = Duration.seconds(10)

    private let make: @Sendable () throws(Model.Fault) -> Model
    private let pool: Mutex<Pool>
    private let bytesMax: Int
    /// The memory of a copy that has more than it may even without its garbage; 0 where none has.
    private let tooManyBytes = Atomic(0)
    private let isPreparing = Atomic(false)

    init(
        _ first: Model, of tree: JSONTree, bytesMax: Int, make: @escaping @Sendable () throws(Model.Fault) -> Model
    ) {
        self.make = make
        self.bytesMax = bytesMax
        pool = Mutex(Pool(free: [Copy(engine: first, tree: tree)]))
    }

    func with<Result>(
        _ tree: JSONTree, _ work: (Model) throws(Model.Fault) -> (Result, JSONTree)
    ) throws(Model.Fault) -> Result {
        try use(try copy(of: tree)) { (copy) throws(Model.Fault) in
            let result: Result
            (result, copy.tree) = try work(copy.engine)
            if copy.usesCount >= Self.usesBetweenLooks { look(at: &copy) }
            return result
        }
    }

    /// Runs in the background, one at a time, so that the next action need not wait.
    func prepare(_ tree: JSONTree) {
        guard !isPreparing.exchange(true, ordering: .relaxed) else { return }
        Task.detached { [self] in
            // The next use of the state meets the fault again, and says it.
            try? with(tree) { (_) throws(Model.Fault) in ((), tree) }
            isPreparing.store(false, ordering: .relaxed)
        }
    }

    func withAny<Result>(_ work: (Model) throws(Model.Fault) -> Result) throws(Model.Fault) -> Result {
        guard let copy = take({ $0.indices.last }) else { return try work(make()) }
        return try use(copy) { (copy) throws(Model.Fault) in try work(copy.engine) }
    }

    private func use<Result>(
        _ copy: Copy, _ work: (inout Copy) throws(Model.Fault) -> Result
    ) throws(Model.Fault) -> Result {
        var copy = copy
        do throws(Model.Fault) {
            let result = try work(&copy)
            give(copy)
            return result
        } catch {
            // A fault of the model leaves its state as it was; after any other one nothing is known of the engine.
            if error.cause == .model { give(copy) } else { drop() }
            throw error
        }
    }

    private func copy(of tree: JSONTree) throws(Model.Fault) -> Copy {
        if var same = take({ $0.lastIndex { $0.tree === tree } }) {
            same.usesCount += 1
            return same
        }
        // The one that was used longest ago is the least likely to be that of the turns.
        if var other = take({ $0.indices.first }) {
            var patch = JSONPatch()
            // A state that is twice as large has at least as much to change as to load.
            let isLoad = tree.bytesCount > 4096 && other.tree.bytesCount < tree.bytesCount / 2
            if !isLoad { JSONTree.compareDocuments(other.tree, tree, into: &patch) }
            let text = patch.text
            let isFar = !isLoad && text.count > Self.farBytes
            if !isFar || !hasRoomForAnother {
                do throws(Model.Fault) {
                    if isLoad || text.count > tree.bytesCount / 2 + 4096 {
                        try other.engine.load(tree.text)
                    } else {
                        try other.engine.apply(text)
                    }
                    other.tree = tree
                    other.usesCount += 1
                    return other
                } catch {
                    // The engine has an unknown state then; it is dropped, and another one takes its place.
                    drop()
                }
            } else {
                give(other, isOldest: true)
            }
        }
        let engine = try make()
        try engine.load(tree.text)
        var made = Copy(engine: engine, tree: tree)
        if tree.bytesCount > bytesMax / 8 { count(&made) }
        pool.withLock { $0.usedCount += 1 }
        return made
    }

    private var hasRoomForAnother: Bool { pool.withLock { $0.free.count + $0.usedCount < Self.keptMax } }

    private func take(_ find: ([Copy]) -> Int?) -> Copy? {
        pool.withLock { pool in
            guard let index = find(pool.free) else { return nil }
            pool.usedCount += 1
            return pool.free.remove(at: index)
        }
    }

    private func give(_ copy: Copy, isOldest: Bool = false) {
        // An engine ends outside the lock.
        _ = pool.withLock { pool -> Copy? in
            pool.usedCount -= 1
            pool.free.insert(copy, at: isOldest ? 0 : pool.free.count)
            return pool.free.count > Self.keptMax ? pool.free.removeFirst() : nil
        }
    }

    private func drop() { pool.withLock { $0.usedCount -= 1 } }

    var failure: DomainFailure? {
        let bytes = tooManyBytes.load(ordering: .relaxed)
        guard bytes > 0 else { return nil }
        return DomainFailure(
            "model-too-large",
            "the model has \(bytes) bytes of memory, and model_bytes_max is \(bytesMax): a larger limit, or a smaller state, and a restart are needed"
        )
    }

    private func look(at copy: inout Copy) {
        copy.usesCount = 0
        guard Model.processBytesCount > bytesMax, copy.counted + Self.timeBetweenCounts < .now else { return }
        count(&copy)
    }

    /// Takes another engine where this one holds on to what it does not need.
    private func count(_ copy: inout Copy) {
        copy.counted = .now
        if copy.engine.bytesCount > bytesMax / 2 { copy.engine.collect() }
        if copy.engine.bytesCount > bytesMax, let engine = try? make(), (try? engine.load(copy.tree.text)) != nil {
            copy.engine = engine
        }
        let bytes = copy.engine.bytesCount
        tooManyBytes.store(bytes > bytesMax ? bytes : 0, ordering: .relaxed)
    }
}
