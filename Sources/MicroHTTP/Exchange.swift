public import HTTPMessages
import Synchronization

/// One request that is owed an answer, or a stream that goes on until one of its two sides ends it.
///
/// Any thread may answer it. The first of an answer, a deadline, a hang-up and the server's stop wins, by one atomic
/// step from armed to fired; whatever comes later is ignored.
public final class Exchange: Sendable {
    /// The number of this exchange, unique in its server and, in each loop, rising in order of arrival.
    public let id: UInt64
    /// The client's address without its port.
    public let client: String

    private let fired = Atomic(false)
    private let sink: any AnswerSink

    /// Makes an exchange whose answer goes into this sink.
    package init(id: UInt64, client: String, sink: any AnswerSink) {
        self.id = id
        self.client = client
        self.sink = sink
    }

    /// Sends the answer, unless this exchange has been answered or has ended before.
    public func answer(_ response: Response) {
        guard fire() else { return }
        sink.put(.answer([self], response))
    }

    /// Answers all of these exchanges with one response, which is encoded once and shared.
    ///
    /// Those that have been answered or have ended before are left out. O(n) in the number of exchanges, with one
    /// wake-up of each loop that serves some of them.
    public static func answer(_ exchanges: [Exchange], with response: Response) {
        deliver(exchanges.filter { $0.fire() }) { .answer($0, response) }
    }

    /// Gives all of these streams the same bytes, which are shared.
    ///
    /// A stream takes one chunk at a time: it is given the next one after ``Handlers/writable`` has named it.
    /// Streams that have ended are left out. O(n), with one wake-up of each loop that serves some of them.
    ///
    /// - Parameter isLast: whether the streams end after it.
    public static func send(_ chunk: [UInt8], to streams: [Exchange], isLast: Bool = false) {
        deliver(streams.filter { isLast ? $0.fire() : !$0.isOver }) { .chunk($0, chunk, isLast: isLast) }
    }

    private static func deliver(_ exchanges: [Exchange], _ transmission: ([Exchange]) -> Transmission) {
        guard let first = exchanges.first else { return }
        // With one loop, which is usual, they all go the same way.
        guard exchanges.contains(where: { $0.sink !== first.sink }) else {
            return first.sink.put(transmission(exchanges))
        }
        for group in Dictionary(grouping: exchanges, by: { ObjectIdentifier($0.sink) }).values {
            group.first?.sink.put(transmission(group))
        }
    }

    /// Whether it has been answered or has ended: an answer would be ignored.
    public var isOver: Bool { fired.load(ordering: .acquiring) }

    /// Claims the right to answer; true for the first caller only.
    package func fire() -> Bool {
        // Resuming a connection that is not suspended is undefined behaviour (MICROHTTPD.md 4): this step is the gate.
        !fired.exchange(true, ordering: .acquiringAndReleasing)
    }
}

extension Exchange: Hashable {
    /// Exchanges are equal when they are the same object.
    public static func == (left: Exchange, right: Exchange) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// Whoever carries answers to clients.
package protocol AnswerSink: AnyObject, Sendable {
    /// Takes something to carry; each exchange in it has been claimed, or is a stream.
    func put(_ transmission: Transmission)
}

/// Something to be carried to clients, the same for all of them.
package enum Transmission: Sendable {
    /// An answer.
    case answer([Exchange], Response)
    /// A chunk of a stream, perhaps its last.
    case chunk([Exchange], [UInt8], isLast: Bool)
}
