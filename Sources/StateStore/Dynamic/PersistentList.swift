internal import StateJSON

/// An array whose copies share their common parts: an operation on one element is O(log n), a copy O(1).
struct PersistentList<Element: AnyObject & Sendable>: Sendable {
    /// The elements, without their type: all maps of objects share one specialization.
    private var order = PersistentMap<Ranks.Rank, any AnyObject & Sendable>()

    init(_ elements: [Element] = []) {
        order = PersistentMap(sorted: elements.enumerated().map { (Ranks.appended($0), $1) })
    }

    var count: Int { order.count }

    subscript(position: Int) -> Element {
        get { Self.element(order[at: position].value) }
        set { order.set(order[at: position].key, newValue) }
    }

    mutating func insert(_ element: Element, at position: Int) { order.insert(element, at: position) }

    mutating func remove(at position: Int) { order.remove(order[at: position].key) }

    func visit<Failure: Error>(_ body: (Element) throws(Failure) -> Void) throws(Failure) {
        try order.visit { (_, element) throws(Failure) in try body(Self.element(element)) }
    }

    struct Differences {
        var removed: [(position: Int, element: Element)] = []
        var inserted: [(position: Int, element: Element)] = []
        var replaced: [(position: Int, old: Element, new: Element)] = []
    }

    /// The cost is that of the differences; `areEqual` returns nil where nothing short tells.
    static func differences(
        _ old: PersistentList, _ new: PersistentList, countMax: Int, _ areEqual: (Element, Element) -> Bool?
    ) throws(JSONPatch.ManyDifferences) -> Differences {
        var (found, count) = (Differences(), 0)
        try PersistentMap.visitDifferences(old.order, new.order) {
            (rank, before, after) throws(JSONPatch.ManyDifferences) in
            guard before !== after else { return }
            switch (before.map(element), after.map(element)) {
            case (let before?, let after?):
                let isSame = areEqual(before, after)
                if isSame == true { return }
                found.replaced.append((new.order.position(of: rank), before, after))
                if isSame == nil { return }
            case (let before?, nil): found.removed.append((old.order.position(of: rank), before))
            case (nil, let after?): found.inserted.append((new.order.position(of: rank), after))
            case (nil, nil): return
            }
            count += 1
            guard count <= countMax else { throw JSONPatch.ManyDifferences() }
        }
        return found
    }

    var elements: [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(count)
        visit { elements.append($0) }
        return elements
    }

    private static func element(_ object: any AnyObject) -> Element { unsafeDowncast(object, to: Element.self) }
}
