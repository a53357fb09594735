/// An array whose copies share their common parts.
///
/// Reading, setting, inserting and removing one element is O(log n), and a copy is O(1). A comparison of two lists skips
/// what they share.
struct PersistentList<Element: AnyObject & Sendable>: Sendable {
    /// The elements, without their type: all maps of objects share one specialization.
    private var order = PersistentMap<Ranks.Rank, any AnyObject & Sendable>()

    init(_ elements: [Element] = []) {
        order = PersistentMap(sorted: elements.enumerated().map { (Ranks.appended($0), $1) })
    }

    var count: Int { order.count }

    /// - Precondition: the position is inside the list.
    subscript(position: Int) -> Element {
        get { Self.element(order[at: position].value) }
        set { order.set(order[at: position].key, newValue) }
    }

    /// - Precondition: `0 <= position <= count`.
    mutating func insert(_ element: Element, at position: Int) {
        while true {
            if let rank = order.freeRank(before: position) { return order.set(rank, element) }
            let moved = order.spread(around: position)
            for (old, _, _) in moved { order.remove(old) }
            for (_, new, value) in moved { order.set(new, value) }
        }
    }

    /// - Precondition: the position is inside the list.
    mutating func remove(at position: Int) { order.remove(order[at: position].key) }

    func visit<Failure: Error>(_ body: (Element) throws(Failure) -> Void) throws(Failure) {
        try order.visit { (_, element) throws(Failure) in try body(Self.element(element)) }
    }

    struct Differences {
        var removed: [(position: Int, element: Element)] = []
        var inserted: [(position: Int, element: Element)] = []
        var replaced: [(position: Int, old: Element, new: Element)] = []
    }

    /// Compares two lists; the cost is that of the differences.
    static func differences(_ old: PersistentList, _ new: PersistentList) -> Differences {
        var found = Differences()
        PersistentMap.visitDifferences(old.order, new.order) { rank, before, after in
            switch (before.map(element), after.map(element)) {
            case (let before?, let after?):
                if before !== after { found.replaced.append((new.order.position(of: rank), before, after)) }
            case (let before?, nil): found.removed.append((old.order.position(of: rank), before))
            case (nil, let after?): found.inserted.append((new.order.position(of: rank), after))
            case (nil, nil): break
            }
        }
        return found
    }

    private static func element(_ object: any AnyObject) -> Element { unsafeDowncast(object, to: Element.self) }
}
