internal import Dispatch
internal import Logging
internal import StateStore
internal import Synchronization

/// Changes of the list while the server runs, in their order; one write has all that have come during the one before.
final class QuarantineChanges: Sendable {
    typealias Change = @Sendable (inout [QuarantineEntry]) -> Void

    private let file: QuarantineFile
    private let logger: Logger
    private let unwritten = Mutex<[Change]>([])
    private let queue = DispatchQueue(label: "storekeeper.quarantine")

    init(_ file: QuarantineFile, _ logger: Logger) { (self.file, self.logger) = (file, logger) }

    /// Makes a change as often as it takes, lest what is harmless be set aside; `body` may run again.
    func change(_ body: @escaping Change) {
        let isFirst = unwritten.withLock { unwritten in
            unwritten.append(body)
            return unwritten.count == 1
        }
        if isFirst { queue.async { self.writeAll() } }
    }

    func afterwards(_ done: @escaping @Sendable () -> Void) { queue.async(execute: done) }

    /// Tries to make a change once, behind those before, and waits; false where the list may not have it.
    func make(_ body: (inout [QuarantineEntry]) -> Void) -> Bool { queue.sync { write(body) } }

    func release(_ identity: TransactionIdentity) { change { $0.removeAll { $0.identity == identity } } }

    private func writeAll() {
        while unwritten.withLock({ !$0.isEmpty }) {
            guard write({ _ in }) else {
                return queue.asyncAfter(deadline: .now() + .milliseconds(500)) { self.writeAll() }
            }
        }
    }

    private func write(_ body: (inout [QuarantineEntry]) -> Void) -> Bool {
        let changes = unwritten.withLock(\.self)
        do throws(SettingsFault) {
            // A change that leaves the list as it is shows that the list can be written.
            try file.change(writesSame: true) { entries in
                var changed = entries ?? []
                for change in changes { change(&changed) }
                body(&changed)
                entries = changed
            }
        } catch {
            logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
            return false
        }
        unwritten.withLock { $0.removeFirst(changes.count) }
        return true
    }
}
