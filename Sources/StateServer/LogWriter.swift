internal import Dispatch
internal import Glibc
internal import Synchronization

/// The way of log lines to a descriptor: a bounded queue that a thread of its own empties.
///
/// A full pipe behind the log blocks that thread only; what does not fit is dropped. Any thread may call a method.
final class LogWriter: Sendable {
    static let standardError = LogWriter(descriptor: STDERR_FILENO)

    private let waiting = Mutex((bytesCount: 0, droppedCount: 0))
    private let queue = DispatchQueue(label: "storekeeper.log", qos: .utility)
    private let descriptor: Int32
    private let bytesMax: Int

    init(descriptor: Int32, bytesMax: Int = 256 << 10) {
        self.descriptor = descriptor
        self.bytesMax = bytesMax
    }

    func write(_ line: [UInt8]) {
        let isTaken = waiting.withLock { waiting in
            let isTaken = waiting.bytesCount + line.count <= bytesMax
            if isTaken { waiting.bytesCount += line.count } else { waiting.droppedCount += 1 }
            return isTaken
        }
        guard isTaken else { return }
        queue.async { [self] in
            waiting.withLock { $0.bytesCount -= line.count }
            put(line)
            // Behind the lines that were taken before.
            let count = waiting.withLock { $0.bytesCount == 0 ? exchange(&$0.droppedCount, with: 0) : 0 }
            if count > 0 {
                put(Array(#"{"level":"warning","message":"log lines dropped","count":"\#(count)"}"#.utf8) + [0x0A])
            }
        }
    }

    func flush(within time: Duration) {
        let isDone = DispatchSemaphore(value: 0)
        queue.async { isDone.signal() }
        _ = isDone.wait(timeout: .now() + .nanoseconds(Int(time / .nanoseconds(1))))
    }

    private func put(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EAGAIN {
                // The other end has made the pipe non-blocking for both of us.
                usleep(10_000)
            } else if count < 0, errno != EINTR {
                // An error has nowhere to go: the log itself has failed.
                break
            } else {
                rest = rest.dropFirst(max(0, count))
            }
        }
    }
}
