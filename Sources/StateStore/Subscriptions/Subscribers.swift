internal import Synchronization

struct Notification: Sendable {
    let causation: Causation
    let snapshot: Snapshot
    /// The follow-ups that the store dispatches as one transaction after the last subscriber.
    var batched: [any Action] = []
}

/// The subscriptions of a store, in the order in which they began.
///
/// A subscription's closure is released when the subscription ends, outside every lock: the closure may own the tokens of
/// other subscriptions.
final class Subscribers: Sendable {
    final class Registration: Sendable {
        /// Calls the subscriber; false when it has been released.
        typealias Notify = @Sendable (_ commit: Commit?, _ old: Snapshot?, _ new: Snapshot) -> Bool

        /// The closure in a struct: each access to a bare closure in a generic container wraps it once more.
        private struct Held {
            let notify: Notify
        }

        private let held: Mutex<Held?>
        /// Whether the list counts this registration; only code under the list's lock changes it.
        fileprivate let isCounted = Atomic(false)

        init(_ notify: @escaping Notify) {
            held = Mutex(Held(notify: notify))
        }

        var isOver: Bool { held.withLock { $0 == nil } }

        /// True when this call has ended the registration, because the subscriber has been released.
        fileprivate func notifyAndEnd(_ commit: Commit?, _ old: Snapshot?, _ new: Snapshot) -> Bool {
            guard let held = held.withLock({ $0 }) else { return false }
            return !held.notify(commit, old, new) && end()
        }

        fileprivate func end() -> Bool { held.withLock { $0.take() } != nil }
    }

    private struct List {
        var registrations: [Registration] = []
        var openCount = 0
        var byObject: [ObjectIdentifier: Registration] = [:]

        mutating func add(_ registration: Registration) {
            registrations.append(registration)
            registration.isCounted.store(true, ordering: .relaxed)
            openCount += 1
        }

        mutating func discount(_ registration: Registration) {
            guard registration.isCounted.exchange(false, ordering: .relaxed) else { return }
            openCount -= 1
            // Ended registrations are removed when they are half of the list, so that ending one is amortized O(1).
            let endedCount = registrations.count - openCount
            if endedCount > 16, endedCount * 2 > registrations.count { sweep() }
        }

        mutating func sweep() {
            registrations.removeAll(where: \.isOver)
            byObject = byObject.filter { !$0.value.isOver }
        }
    }

    private let list = Mutex(List())
    /// A count that each turn asks for, without the lock.
    let openCount = Atomic(0)

    private func change<Result>(_ body: (inout sending List) -> sending Result) -> sending Result {
        list.withLock { list in
            defer { openCount.store(list.openCount, ordering: .releasing) }
            return body(&list)
        }
    }

    /// Appends a registration, unless it has ended already, and ends the object's earlier one.
    func add(_ registration: Registration, of object: ObjectIdentifier? = nil) {
        let former: Registration? = change { list in
            guard !registration.isOver else { return nil }
            list.add(registration)
            return object.flatMap { list.byObject.updateValue(registration, forKey: $0) }
        }
        if let former { end(former) }
    }

    func end(_ registration: Registration) {
        if registration.end() { change { $0.discount(registration) } }
    }

    func end(_ object: ObjectIdentifier) {
        if let registration = change({ $0.byObject.removeValue(forKey: object) }) { end(registration) }
    }

    func notify(_ registration: Registration, _ snapshot: Snapshot) {
        if registration.notifyAndEnd(nil, nil, snapshot) { change { $0.discount(registration) } }
    }

    func notify(_ commit: Commit, from old: Snapshot, to new: Snapshot) {
        let registrations = list.withLock { $0.registrations }
        var gone: [Registration] = []
        for registration in registrations where registration.notifyAndEnd(commit, old, new) {
            gone.append(registration)
        }
        guard !gone.isEmpty else { return }
        // The registrations of released objects have ended without a call of `end`, so they are still counted.
        change { list in
            for registration in gone { list.discount(registration) }
            list.sweep()
        }
    }
}

final class Gate: Sendable {
    private let isClosed = Atomic(false)

    var isOpen: Bool { !isClosed.load(ordering: .acquiring) }

    func pass(_ call: () -> Void) { if isOpen { call() } }

    func close() { isClosed.store(true, ordering: .releasing) }
}
