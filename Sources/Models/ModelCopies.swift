internal import StateJSON
internal import StateStore
internal import Synchronization

/// The engines that have a model loaded, each with a copy of some state of it.
///
/// Whoever reduces or looks gets a copy of exactly the state that it names: the copy that is nearest, changed by the
/// difference. So the turns of a store find the copy that they have left, and readers of other states beside them have
/// copies of their own. The state in the store leads; what an engine has is never read back.
final class ModelCopies: Sendable {
    private struct Copy {
        let engine: Model
        var tree: JSONTree
    }

    /// Enough for the turns, for a reader beside them, and for a fork.
    private static let keptMax = 3

    private let make: @Sendable () throws(Model.Fault) -> Model
    /// The copies that nobody uses, the one that was used last at the end.
    private let free: Mutex<[Copy]>

    /// - Parameters:
    ///   - first: a copy of the state.
    ///   - make: makes an engine with the model.
    init(
        _ first: Model, of tree: JSONTree, make: @escaping @Sendable () throws(Model.Fault) -> Model
    ) {
        self.make = make
        free = Mutex([Copy(engine: first, tree: tree)])
    }

    /// Runs a function on a copy of a state.
    ///
    /// - Parameter work: returns its result and the state that the copy has afterwards.
    func with<Result>(
        _ tree: JSONTree, _ work: (Model) throws(Model.Fault) -> (Result, JSONTree)
    ) throws(Model.Fault) -> Result {
        let engine = try copy(of: tree)
        do throws(Model.Fault) {
            let (result, after) = try work(engine)
            give(Copy(engine: engine, tree: after))
            return result
        } catch {
            // A fault of the model leaves its state as it was.
            give(Copy(engine: engine, tree: tree))
            throw error
        }
    }

    /// An engine with a copy of a state, which nobody else has.
    private func copy(of tree: JSONTree) throws(Model.Fault) -> Model {
        if let taken = take(nearest: tree) {
            do throws(Model.Fault) {
                try Self.follow(taken.engine, from: taken.tree, to: tree)
                return taken.engine
            } catch {
                // What the engine has is not known then; it is dropped, and another one takes its place.
            }
        }
        let engine = try make()
        try engine.load(tree.text)
        return engine
    }

    /// The free copy of a state, or else the one that was used longest ago, as long as a further one is not worth its memory.
    private func take(nearest tree: JSONTree) -> Copy? {
        free.withLock { free in
            if let index = free.lastIndex(where: { $0.tree === tree }) { return free.remove(at: index) }
            return free.isEmpty ? nil : free.removeFirst()
        }
    }

    private func give(_ copy: Copy) {
        // An engine ends outside the lock.
        _ = free.withLock { free -> Copy? in
            free.append(copy)
            return free.count > Self.keptMax ? free.removeFirst() : nil
        }
    }

    private static func follow(_ model: Model, from old: JSONTree, to new: JSONTree) throws(Model.Fault) {
        guard old !== new else { return }
        var patch = JSONPatch()
        JSONTree.compare(old, new, into: &patch)
        guard !patch.isEmpty else { return }
        let text = patch.text
        // A patch of the size of the state costs more than the state.
        if text.count > new.bytesCount / 2 + 4096 { try model.load(new.text) } else { try model.apply(text) }
    }
}
