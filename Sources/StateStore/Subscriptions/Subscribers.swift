internal import Synchronization

/// What is being told, while it is.
struct Notification<State: StateType>: Sendable {
    let causation: Causation
    let snapshot: Snapshot<State>
    /// What subscribers want dispatched as one, when all have been told.
    var batched: [any Action] = []
}

/// The subscriptions of a store, in the order in which they began.
///
/// What a subscription holds is let go of when it ends, and outside every lock: it may hold other subscriptions.
final class Subscribers<State: StateType>: Sendable {
    /// A subscription that lives until it is ended or its subscriber has gone.
    final class Registration: Sendable {
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
        var registrations: [Registration] = []
        var openCount = 0
        /// The registration of an object that subscribes for itself.
        var byObject: [ObjectIdentifier: Registration] = [:]

        mutating func add(_ registration: Registration) {
            registrations.append(registration)
            registration.isCounted.store(true, ordering: .relaxed)
            openCount += 1
        }

        mutating func discount(_ registration: Registration) {
            guard registration.isCounted.exchange(false, ordering: .relaxed) else { return }
            openCount -= 1
            // Swept when half have ended, so that ending one costs the same however many there are.
            let endedCount = registrations.count - openCount
            if endedCount > 16, endedCount * 2 > registrations.count { sweep() }
        }

        mutating func sweep() {
            registrations.removeAll(where: \.isOver)
            byObject = byObject.filter { !$0.value.isOver }
        }
    }

    private let list = Mutex(List())

    var count: Int { list.withLock { $0.openCount } }

    /// Adds a registration at the end, unless it has ended already.
    ///
    /// An object has one: the one that it had before ends.
    func add(_ registration: Registration, of object: ObjectIdentifier? = nil) {
        let former: Registration? = list.withLock { list in
            guard !registration.isOver else { return nil }
            list.add(registration)
            return object.flatMap { list.byObject.updateValue(registration, forKey: $0) }
        }
        if let former { end(former) }
    }

    /// Ends a subscription.
    func end(_ registration: Registration) {
        if registration.end() { list.withLock { $0.discount(registration) } }
    }

    /// Ends the subscription of an object.
    func end(_ object: ObjectIdentifier) {
        if let registration = list.withLock({ $0.byObject.removeValue(forKey: object) }) { end(registration) }
    }

    /// Tells one subscriber what stands now.
    func tell(_ registration: Registration, _ snapshot: Snapshot<State>) {
        if registration.tellAndEnd(nil, nil, snapshot) { list.withLock { $0.discount(registration) } }
    }

    /// Tells a commit to everybody who was there when it began to be told.
    func tell(_ commit: Commit, from old: Snapshot<State>, to new: Snapshot<State>) {
        let registrations = list.withLock { $0.registrations }
        var gone: [Registration] = []
        for registration in registrations where registration.tellAndEnd(commit, old, new) { gone.append(registration) }
        guard !gone.isEmpty else { return }
        // Objects that have gone end their registration without anybody asking for it.
        list.withLock { list in
            for registration in gone { list.discount(registration) }
            list.sweep()
        }
    }
}
