internal import Dispatch
internal import Logging
internal import StateStore
internal import Synchronization

/// Changes of the list while the server runs, in their order; the next one writes all that have come during it.
final class QuarantineChanges: Sendable {
    private struct Change {
        let body: @Sendable (inout [QuarantineFile.Entry]) -> Void
        let done: (@Sendable (Bool) -> Void)?
    }

    private let file: QuarantineFile
    private let logger: Logger
    private let waiting = Mutex<[Change]>([])
    private let queue = DispatchQueue(label: "storekeeper.quarantine")

    init(_ file: QuarantineFile, _ logger: Logger) { (self.file, self.logger) = (file, logger) }

    /// Without `done` a change is tried until it is made, lest what is harmless be set aside; `body` may run again.
    func change(
        _ body: @escaping @Sendable (inout [QuarantineFile.Entry]) -> Void,
        then done: (@Sendable (Bool) -> Void)? = nil
    ) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(Change(body: body, done: done))
            return waiting.count == 1
        }
        if isFirst { queue.async { self.write() } }
    }

    func release(_ identity: TransactionIdentity) { change { $0.removeAll { $0.identity == identity } } }

    private func write() {
        let changes = waiting.withLock { exchange(&$0, with: []) }
        guard !changes.isEmpty else { return }
        do throws(SettingsFault) {
            try file.change { entries in for change in changes { change.body(&entries) } }
            for change in changes { change.done?(true) }
        } catch {
            logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
            retry(changes.filter { $0.done == nil })
            for change in changes { change.done?(false) }
        }
    }

    private func retry(_ changes: [Change]) {
        guard !changes.isEmpty else { return }
        waiting.withLock { $0 = changes + $0 }
        queue.asyncAfter(deadline: .now() + .milliseconds(500)) { self.write() }
    }
}
