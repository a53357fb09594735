internal import DequeModule
internal import Dispatch
internal import Glibc
internal import Synchronization

/// The way of log lines to a descriptor: a bounded buffer that a thread of its own empties.
///
/// A full pipe behind the log blocks that thread only; what does not fit is dropped. Any thread may call a method.
final class LogWriter: Sendable {
    private struct State {
        var lines: Deque<[UInt8]> = []
        var bytesCount = 0
        var droppedCount = 0
        var isWriting = false
    }

    static let standardError = LogWriter(descriptor: STDERR_FILENO)

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "storekeeper.log", qos: .utility)
    private let descriptor: Int32
    private let bytesMax: Int

    init(descriptor: Int32, bytesMax: Int = 256 << 10) {
        self.descriptor = descriptor
        self.bytesMax = bytesMax
    }

    func write(_ line: [UInt8]) {
        let mustStart = state.withLock { state in
            guard state.bytesCount + line.count <= bytesMax else {
                state.droppedCount += 1
                return false
            }
            state.lines.append(line)
            state.bytesCount += line.count
            return !exchange(&state.isWriting, with: true)
        }
        if mustStart { queue.async { self.writeAll() } }
    }

    func flush(within time: Duration) {
        let isDone = DispatchSemaphore(value: 0)
        queue.async { isDone.signal() }
        _ = isDone.wait(timeout: .now() + .nanoseconds(Int(time / .nanoseconds(1))))
    }

    private func writeAll() {
        while let bytes = next() {
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

    private func next() -> [UInt8]? {
        state.withLock { state in
            if let line = state.lines.popFirst() {
                state.bytesCount -= line.count
                return line
            }
            if state.droppedCount > 0 {
                let count = exchange(&state.droppedCount, with: 0)
                return Array(#"{"level":"warning","message":"log lines dropped","count":"\#(count)"}"#.utf8) + [0x0A]
            }
            state.isWriting = false
            return nil
        }
    }
}
