internal import Dispatch
internal import FoundationEssentials
internal import Glibc
public import Logging
internal import StateJSON
internal import Synchronization

/// Writes each message as one line of standard error: as JSON, or as text where standard error is a terminal.
///
/// The message is a fixed phrase; the metadata are further members of the object, or pairs behind the phrase. A thread of
/// its own writes the lines. Where standard error does not take them, up to 256 KiB of lines wait; further ones are dropped
/// and counted.
public struct StateLogHandler: LogHandler {
    enum Form { case json, text }

    /// The lowest level that the handler writes.
    public var logLevel: Logger.Level = .info
    /// The metadata of every line.
    public var metadata: Logger.Metadata = [:]
    private let form: Form
    private let writer: LogWriter

    /// Makes a handler for the logger with a label, which the lines do not show.
    public init(label: String) {
        self.init(form: isatty(STDERR_FILENO) == 1 ? .text : .json, writer: .standardError)
    }

    init(form: Form, writer: LogWriter) {
        self.form = form
        self.writer = writer
    }

    /// Waits until the lines so far are written, at most for a time; for a process that is about to end.
    public static func flush(within time: Duration = .seconds(1)) { LogWriter.standardError.flush(within: time) }

    /// The metadata of every line under a key.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes an event as one line.
    public func log(event: LogEvent) {
        let time = Date().formatted(
            .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
        let pairs = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
        switch form {
        case .json: writer.write(Self.json(time, event, pairs))
        case .text: writer.write(Self.text(time, event, pairs))
        }
    }

    private typealias Pairs = [(key: String, value: Logger.MetadataValue)]

    private static func json(_ time: String, _ event: LogEvent, _ pairs: Pairs) -> [UInt8] {
        let members = [("time", time), ("level", event.level.rawValue), ("message", event.message.description)]
        // The line's own members stay, also where a fact has the name of one.
        let facts = pairs.filter { pair in !members.contains { $0.0 == pair.key } }
        let all = members + facts.map { ($0.key, $0.value.description) }
        return JSONValue.of(all.map { ($0, .string($1)) }).text + [0x0A]
    }

    private static func text(_ time: String, _ event: LogEvent, _ pairs: Pairs) -> [UInt8] {
        let level = event.level.rawValue
        var line = "\(time) \(level)\(String(repeating: " ", count: max(1, 9 - level.utf8.count)))\(event.message)"
        for (key, value) in pairs {
            var text = value.description
            if !text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") }) {
                text = String(decoding: JSONValue.string(text).text, as: UTF8.self)
            }
            line += " \(key)=\(text)"
        }
        return Array(line.utf8) + [0x0A]
    }
}

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
