internal import Synchronization

/// What is being told, while it is.
struct Telling<State: StateType>: Sendable {
    let lineage: Lineage
    let snapshot: Snapshot<State>
    /// What subscribers want dispatched as one, when all have been told.
    var conducted: [any Action] = []
}

/// The subscriptions of a store, in the order in which they began.
final class Subscribers<State: StateType>: Sendable {
    /// A subscription that lives until it is ended or its subscriber has gone.
    final class Place: Sendable {
        private let isOpen = Atomic(true)
        /// Tells a commit; false when there is nobody to tell any more.
        private let tell: @Sendable (_ commit: Commit?, _ old: Snapshot<State>?, _ new: Snapshot<State>) -> Bool

        init(
            _ tell: @escaping @Sendable (_ commit: Commit?, _ old: Snapshot<State>?, _ new: Snapshot<State>) -> Bool
        ) {
            self.tell = tell
        }

        var isOver: Bool { !isOpen.load(ordering: .acquiring) }

        /// Tells a commit, unless this has ended; false when it has.
        func hear(_ commit: Commit?, _ old: Snapshot<State>?, _ new: Snapshot<State>) -> Bool {
            if !isOver, !tell(commit, old, new) { end() }
            return !isOver
        }

        func end() { isOpen.store(false, ordering: .releasing) }
    }

    private struct List {
        var places: [Place] = []
        var endedCount = 0
        /// The place of an object that subscribes for itself.
        var byObject: [ObjectIdentifier: Place] = [:]
    }

    private let list = Mutex(List())

    var count: Int { list.withLock { $0.places.count - $0.endedCount } }

    /// Adds a place at the end.
    ///
    /// An object has one: the one that it had before ends.
    func add(_ place: Place, of object: ObjectIdentifier? = nil) {
        list.withLock { list in
            list.places.append(place)
            if let object, let former = list.byObject.updateValue(place, forKey: object) {
                Self.end(former, in: &list)
            }
        }
    }

    /// Ends a subscription.
    func end(_ place: Place) {
        list.withLock { Self.end(place, in: &$0) }
    }

    /// Ends the subscription of an object.
    func end(_ object: ObjectIdentifier) {
        list.withLock { list in
            if let place = list.byObject.removeValue(forKey: object) { Self.end(place, in: &list) }
        }
    }

    private static func end(_ place: Place, in list: inout List) {
        guard !place.isOver else { return }
        place.end()
        list.endedCount += 1
        // Swept when half have ended, so that ending one costs the same however many there are.
        guard list.endedCount > 16, list.endedCount * 2 > list.places.count else { return }
        sweep(&list)
    }

    private static func sweep(_ list: inout List) {
        list.places.removeAll(where: \.isOver)
        list.byObject = list.byObject.filter { !$0.value.isOver }
        list.endedCount = 0
    }

    /// Tells a commit to everybody who was there when it began to be told.
    func tell(_ commit: Commit, from old: Snapshot<State>, to new: Snapshot<State>) {
        let places = list.withLock { $0.places }
        var hasGone = false
        for place in places where !place.isOver { hasGone = !place.hear(commit, old, new) || hasGone }
        // Objects that have gone end their place without anybody asking for it.
        if hasGone { list.withLock { Self.sweep(&$0) } }
    }
}
