internal import Synchronization

final class Gate: Sendable {
    private let isClosed = Atomic(false)

    var isOpen: Bool { !isClosed.load(ordering: .acquiring) }

    func pass(_ call: () -> Void) { if isOpen { call() } }

    func close() { isClosed.store(true, ordering: .releasing) }
}
