internal import Dispatch
internal import Logging
internal import StateStore
internal import Synchronization

/// Changes of the list while the server runs; those that come during a change are written together by the next one.
final class QuarantineChanges: Sendable {
    private struct Change {
        let body: @Sendable (inout [QuarantineFile.Entry]) -> Void
        let done: @Sendable (Bool) -> Void
    }

    private let file: QuarantineFile
    private let logger: Logger
    private let waiting = Mutex<[Change]>([])
    private let queue = DispatchQueue(label: "storekeeper.quarantine")

    init(_ file: QuarantineFile, _ logger: Logger) { (self.file, self.logger) = (file, logger) }

    /// Changes the list, and returns before.
    ///
    /// - Parameters:
    ///   - body: may be called again where another server has been first.
    ///   - done: takes whether the list is changed, on the thread that changes it.
    func change(
        _ body: @escaping @Sendable (inout [QuarantineFile.Entry]) -> Void,
        then done: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(Change(body: body, done: done))
            return waiting.count == 1
        }
        if isFirst { queue.async { self.write() } }
    }

    /// Drops what was computed without harm.
    func release(_ identity: TransactionIdentity) { change { $0.removeAll { $0.identity == identity } } }

    private func write() {
        let changes = waiting.withLock { exchange(&$0, with: []) }
        var isDone = true
        do throws(SettingsFault) {
            try file.change { entries in for change in changes { change.body(&entries) } }
        } catch {
            isDone = false
            logger.error("quarantine not written", metadata: ["reason": .string("\(error)")])
        }
        for change in changes { change.done(isDone) }
    }
}
