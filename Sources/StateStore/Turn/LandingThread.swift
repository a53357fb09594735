internal import Dispatch
internal import Synchronization
internal import Threads

/// A thread of its own for the landing of turns: a dispatch queue often takes another thread, whose caches know nothing
/// of the journal, and a single client that writes waits for that.
package final class LandingThread: Sendable {
    private final class Work: Sendable {
        let bodies = Mutex<[@Sendable () -> Void]>([])
        /// Counts the bodies; one more than there are is the end.
        let count = DispatchSemaphore(value: 0)

        func runAll() {
            while true {
                count.wait()
                guard let body = bodies.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
                body()
            }
        }
    }

    private let work = Work()
    private let isRunning = Atomic(false)

    package init() {}

    deinit { work.count.signal() }

    /// Runs a function in order, on a dispatch queue where there are no more threads; one thread at a time calls this.
    package func run(_ body: @escaping @Sendable () -> Void) {
        guard isRunning.load(ordering: .relaxed) || start() else {
            return DispatchQueue.global().async(execute: body)
        }
        work.bodies.withLock { $0.append(body) }
        work.count.signal()
    }

    private func start() -> Bool {
        guard let thread = try? SystemThread({ [work] in work.runAll() }) else { return false }
        thread.detach()
        isRunning.store(true, ordering: .relaxed)
        return true
    }
}
