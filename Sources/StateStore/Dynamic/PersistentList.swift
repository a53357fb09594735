internal import StateJSON

/// An array whose copies share their common parts: an operation on one element is O(log n), a copy O(1).
struct PersistentList: Sendable {
    /// The elements, without their type: all maps of objects share one specialization.
    private var order = PersistentMap<Ranks.Rank, any AnyObject & Sendable>()

    init(_ elements: [JSONTree]) {
        order = PersistentMap(sorted: elements.enumerated().map { (Ranks.appended($0), $1) })
    }

    var count: Int { order.count }

    subscript(position: Int) -> JSONTree {
        get { JSONTree.tree(order[at: position].value) }
        set { order.set(order[at: position].key, newValue) }
    }

    mutating func insert(_ element: JSONTree, at position: Int) { order.insert(element, at: position) }

    mutating func remove(at position: Int) { order.remove(order[at: position].key) }

    func visit<Failure: Error>(_ body: (JSONTree) throws(Failure) -> Void) throws(Failure) {
        try order.visit { (_, element) throws(Failure) in try body(JSONTree.tree(element)) }
    }

    struct Differences {
        var removed: [(position: Int, element: JSONTree)] = []
        var inserted: [(position: Int, element: JSONTree)] = []
        var replaced: [(position: Int, old: JSONTree, new: JSONTree)] = []
    }

    /// The cost is that of the differences.
    static func differences(
        _ old: PersistentList, _ new: PersistentList, countMax: Int
    ) throws(JSONPatch.ManyDifferences) -> Differences {
        var (found, count) = (Differences(), 0)
        try PersistentMap.visitDifferences(old.order, new.order) {
            (rank, before, after) throws(JSONPatch.ManyDifferences) in
            guard before !== after else { return }
            switch (before.map(JSONTree.tree), after.map(JSONTree.tree)) {
            case (let before?, let after?):
                let texts: ([UInt8], [UInt8])? =
                    if case .text(let old) = before.shape, case .text(let new) = after.shape { (old, new) } else { nil }
                if let texts, texts.0 == texts.1 { return }
                found.replaced.append((new.order.position(of: rank), before, after))
                // The differences inside long elements count where they are listed.
                if texts == nil { return }
            case (let before?, nil): found.removed.append((old.order.position(of: rank), before))
            case (nil, let after?): found.inserted.append((new.order.position(of: rank), after))
            case (nil, nil): return
            }
            count += 1
            guard count <= countMax else { throw JSONPatch.ManyDifferences() }
        }
        return found
    }

    var elements: [JSONTree] {
        var elements: [JSONTree] = []
        elements.reserveCapacity(count)
        visit { elements.append($0) }
        return elements
    }
}
