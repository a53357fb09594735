internal import Synchronization

/// What is being told, while it is.
struct Telling<State: StateType>: Sendable {
    let lineage: Lineage
    let snapshot: Snapshot<State>
    /// What subscribers want dispatched as one, when all have been told.
    var conducted: [any Action] = []
}

/// The subscriptions of a store, in the order in which they began.
///
/// What a subscription holds is let go of when it ends, and outside every lock: it may hold other subscriptions.
final class Subscribers<State: StateType>: Sendable {
    /// A subscription that lives until it is ended or its subscriber has gone.
    final class Place: Sendable {
        /// Tells a commit; false when its subscriber has gone.
        typealias Tell = @Sendable (_ commit: Commit?, _ old: Snapshot<State>?, _ new: Snapshot<State>) -> Bool

        /// A function in a structure: each access to a bare one in a generic container wraps it once more.
        private struct Held {
            let tell: Tell
        }

        /// Nil when this has ended.
        private let held: Mutex<Held?>
        /// Whether the list counts this; changed only under the list's lock.
        fileprivate let isCounted = Atomic(false)

        init(_ tell: @escaping Tell) {
            held = Mutex(Held(tell: tell))
        }

        var isOver: Bool { held.withLock { $0 == nil } }

        /// Tells a commit, unless this has ended; true when it ends by that, as its subscriber has gone.
        fileprivate func tellAndEnd(_ commit: Commit?, _ old: Snapshot<State>?, _ new: Snapshot<State>) -> Bool {
            guard let held = held.withLock({ $0 }) else { return false }
            return !held.tell(commit, old, new) && end()
        }

        /// Ends this; false when it has ended before.
        fileprivate func end() -> Bool { held.withLock { $0.take() } != nil }
    }

    private struct List {
        var places: [Place] = []
        var openCount = 0
        /// The place of an object that subscribes for itself.
        var byObject: [ObjectIdentifier: Place] = [:]

        mutating func add(_ place: Place) {
            places.append(place)
            place.isCounted.store(true, ordering: .relaxed)
            openCount += 1
        }

        mutating func discount(_ place: Place) {
            guard place.isCounted.exchange(false, ordering: .relaxed) else { return }
            openCount -= 1
            // Swept when half have ended, so that ending one costs the same however many there are.
            let endedCount = places.count - openCount
            if endedCount > 16, endedCount * 2 > places.count { sweep() }
        }

        mutating func sweep() {
            places.removeAll(where: \.isOver)
            byObject = byObject.filter { !$0.value.isOver }
        }
    }

    private let list = Mutex(List())

    var count: Int { list.withLock { $0.openCount } }

    /// Adds a place at the end, unless it has ended already.
    ///
    /// An object has one: the one that it had before ends.
    func add(_ place: Place, of object: ObjectIdentifier? = nil) {
        let former: Place? = list.withLock { list in
            guard !place.isOver else { return nil }
            list.add(place)
            return object.flatMap { list.byObject.updateValue(place, forKey: $0) }
        }
        if let former { end(former) }
    }

    /// Ends a subscription.
    func end(_ place: Place) {
        if place.end() { list.withLock { $0.discount(place) } }
    }

    /// Ends the subscription of an object.
    func end(_ object: ObjectIdentifier) {
        if let place = list.withLock({ $0.byObject.removeValue(forKey: object) }) { end(place) }
    }

    /// Tells one subscriber what stands now.
    func tell(_ place: Place, _ moment: Snapshot<State>) {
        if place.tellAndEnd(nil, nil, moment) { list.withLock { $0.discount(place) } }
    }

    /// Tells a commit to everybody who was there when it began to be told.
    func tell(_ commit: Commit, from old: Snapshot<State>, to new: Snapshot<State>) {
        let places = list.withLock { $0.places }
        var gone: [Place] = []
        for place in places where place.tellAndEnd(commit, old, new) { gone.append(place) }
        guard !gone.isEmpty else { return }
        // Objects that have gone end their place without anybody asking for it.
        list.withLock { list in
            for place in gone { list.discount(place) }
            list.sweep()
        }
    }
}
