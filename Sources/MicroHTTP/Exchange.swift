internal import Glibc
package import HTTPMessages
package import HTTPTypes
import Synchronization

/// One request that is owed an answer, or a stream that lasts until the server or the client ends it.
///
/// Any thread may answer it. An answer, a deadline, a hang-up and the stop of the server compete for one atomic step
/// from armed to fired: the first of them takes effect, and the exchange ignores the others. An answer leads on to
/// given, which tells the loop that it can take the response.
package final class Exchange: Sendable {
    // exclusivity unchecked: each variable has one owner at a time, and a check takes as long as ten accesses.

    /// The number of this exchange, unique in its server and, in each loop, rising in order of arrival.
    package let id: UInt64
    /// The client to whose shares the request counts: its address without the port, or what
    /// ``count(toShareOf:)`` has set.
    package var client: String { share }
    /// It is unsafe by declaration only: the handler sets it before another thread knows the exchange.
    @exclusivity(unchecked) nonisolated(unsafe) private var share: String

    /// Nil without a field of its own; the handler sets it before another thread knows the exchange.
    package var own: OwnFields? {
        get { ownFields }
        set { ownFields = newValue }
    }
    /// It is unsafe by declaration only, as the share is; another module would check each access to a stored property.
    @exclusivity(unchecked) nonisolated(unsafe) private var ownFields: OwnFields?

    package var trace: TraceContext? { own?.trace }

    /// The object by which the handler has admitted the request, set as ``own``.
    package var credential: (any AnyObject & Sendable)? {
        get { ownCredential }
        set { ownCredential = newValue }
    }
    /// It is unsafe by declaration only, as the share is.
    @exclusivity(unchecked) nonisolated(unsafe) private var ownCredential: (any AnyObject & Sendable)?

    private enum Stage: UInt8, AtomicRepresentable { case armed, fired, given }

    private let stage = Atomic(Stage.armed)
    private let isHungUp = Atomic(false)
    /// The socket while libmicrohttpd has it and a handler works on the request; else -1.
    private let socket = Atomic<Int32>(-1)
    /// The answer on its way to the loop: the mailbox then moves only the exchange.
    ///
    /// It is unsafe by declaration only: one thread writes it, after it has claimed the right to answer, and the loop takes
    /// it, after it has read the stage that the writer set behind it.
    @exclusivity(unchecked) nonisolated(unsafe) private var given: WireResponse?
    /// Whether the loop looks for the answer in each of its iterations; only the loop thread uses it.
    @exclusivity(unchecked) nonisolated(unsafe) var isHeld = false
    /// The connection while libmicrohttpd has it and a handler works on the request; only the loop thread uses it.
    @exclusivity(unchecked) nonisolated(unsafe) var pending: ClientConnection?
    private let sink: any AnswerSink

    /// It is unsafe by declaration only, as the share is.
    @exclusivity(unchecked) nonisolated(unsafe) private var added: AddedFields?

    /// The memory of the request's body, which counts as long as somebody works on the request, also when the client has gone.
    private let body: MemoryBudget.Reservation?

    package init(id: UInt64, client: String, sink: any AnswerSink, body: MemoryBudget.Reservation? = nil) {
        self.id = id
        share = client
        self.sink = sink
        self.body = body
    }

    /// A handler calls this while it receives the request, before another thread knows the exchange.
    package func count(toShareOf client: String) { share = client }

    /// A handler calls this as ``count(toShareOf:)``; the fields come behind those of any answer.
    package func add(_ fields: AddedFields) { added = fields }

    package func complete(_ response: inout Response) {
        if let added { response.fields.append(contentsOf: added.fields) }
    }

    /// Sends nothing where the exchange is over, and returns before the answer is on the wire.
    package func answer(_ response: consuming Response) {
        guard fire() else { return }
        complete(&response)
        given = WireResponse(consume response)
        stage.store(.given, ordering: .releasing)
        sink.put(.single(self))
    }

    /// Follows ``Reply/deferred``: a handler calls it once for each, on any thread, also before it has replied.
    package func resume() {
        guard !isOver else { return }
        sink.put(.again(self))
    }

    /// The answer that the exchange was given, once; only the sink that has the exchange calls this.
    package func takeAnswer() -> Response? { takeWireResponse()?.response }

    func takeWireResponse() -> WireResponse? { stage.load(ordering: .acquiring) == .given ? given.take() : nil }

    /// Encodes the response once; O(n) in the exchanges, with at most one wake-up of each loop.
    package static func answer(_ exchanges: [Exchange], with response: Response) {
        let exchanges = exchanges.filter { $0.fire() }
        guard exchanges.contains(where: { $0.added != nil }) else {
            return deliver(exchanges) { .answer($0, response) }
        }
        for group in Dictionary(grouping: exchanges, by: { $0.added.map(ObjectIdentifier.init) }).values {
            var response = response
            group[0].complete(&response)
            deliver(group) { [response] in .answer($0, response) }
        }
    }

    /// A stream takes one chunk at a time: the next one comes after ``Handlers/writable`` has named the stream.
    ///
    /// O(n) in the streams, with at most one wake-up of each loop.
    package static func send(_ chunk: [UInt8], to streams: [Exchange], isLast: Bool = false) {
        send(StreamChunk(chunk, isLast: isLast), to: streams)
    }

    package static func send(_ chunk: StreamChunk, to streams: [Exchange]) {
        deliver(streams.filter { chunk.isLast ? $0.fire() : !$0.isOver }) { .chunk($0, chunk) }
    }

    private static func deliver(_ exchanges: [Exchange], _ transmission: ([Exchange]) -> Transmission) {
        guard let first = exchanges.first else { return }
        // With one loop, the usual configuration, all exchanges have the same sink.
        guard exchanges.contains(where: { $0.sink !== first.sink }) else {
            return first.sink.put(transmission(exchanges))
        }
        for group in Dictionary(grouping: exchanges, by: { ObjectIdentifier($0.sink) }).values {
            group.first?.sink.put(transmission(group))
        }
    }

    /// Closes the connection without the end of the body, so that clients of HTTP/1.1 can tell that it is not complete.
    package func cutOff() {
        guard fire() else { return }
        sink.put(.cut(self))
    }

    package var isOver: Bool { stage.load(ordering: .acquiring) != .armed }

    /// Set for ``Reply/workingLong`` only: elsewhere a hang-up ends the exchange, or is not looked for.
    package var hasHungUp: Bool { isHungUp.load(ordering: .relaxed) }

    /// Asks the system where the loop does not watch; the client may have only finished sending (``Expiry/hangUp``).
    package var isClosedByClient: Bool {
        // POLLRDHUP, which <poll.h> has for _GNU_SOURCE only.
        let readHangUp: Int16 = 0x2000
        var asked = pollfd(fd: socket.load(ordering: .acquiring), events: readHangUp, revents: 0)
        // The system ignores -1. Where the loop closes the socket now, the exchange is over, whatever the answer is.
        return hasHungUp || poll(&asked, 1, 0) > 0
    }

    func noteSocket(_ descriptor: Int32) { socket.store(descriptor, ordering: .releasing) }

    func noteHangUp() { isHungUp.store(true, ordering: .relaxed) }

    /// Returns true to the first caller only.
    package func fire() -> Bool {
        // To resume a connection that is not suspended is undefined behaviour (Libmicrohttpd page, 4). This step lets
        // one caller only get as far as a resumption.
        stage.compareExchange(expected: .armed, desired: .fired, ordering: .acquiringAndReleasing).exchanged
    }
}

/// Fields that the answers of some exchanges get beside their own; exchanges that share the object share answers.
package final class AddedFields: Sendable {
    package let fields: HTTPFields

    package init(_ fields: HTTPFields) { self.fields = fields }
}

extension Exchange: Equatable {
    package static func == (left: Exchange, right: Exchange) -> Bool { left === right }
}

/// A carrier of answers to clients: the mailbox of a loop, or the in-process transport.
package protocol AnswerSink: AnyObject, Sendable {
    /// Any thread may call it; the caller has claimed each exchange, unless the chunk is not the last.
    func put(_ transmission: Transmission)
}

/// The rare parts are behind a reference, because each is copied on its way to the loop.
package enum Transmission: Sendable {
    case single(Exchange)
    indirect case answer([Exchange], Response)
    /// The handlers are ready for the request of this exchange.
    case again(Exchange)
    case cut(Exchange)
    indirect case chunk([Exchange], StreamChunk)
}
