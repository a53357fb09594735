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

    /// The fields that are the request's own; nil without one.
    ///
    /// The handler sets it before another thread knows the exchange.
    package var own: OwnFields? {
        get { ownFields }
        set { ownFields = newValue }
    }
    /// It is unsafe by declaration only, as the share is; another module would check each access to a stored property.
    @exclusivity(unchecked) nonisolated(unsafe) private var ownFields: OwnFields?

    /// The trace that the request belongs to, which its answer names, or nil.
    package var trace: TraceContext? { own?.trace }

    /// The object by which the handler has admitted the request, or nil.
    ///
    /// As ``own``.
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

    /// Makes an exchange that gives its answer to `sink`.
    package convenience init(id: UInt64, client: String, sink: any AnswerSink) {
        self.init(id: id, client: client, sink: sink, body: nil)
    }

    init(id: UInt64, client: String, sink: any AnswerSink, body: MemoryBudget.Reservation?) {
        self.id = id
        share = client
        self.sink = sink
        self.body = body
    }

    /// Makes the request count to another share than that of its address.
    ///
    /// A handler calls this while it receives the request, before another thread knows the exchange.
    package func count(toShareOf client: String) { share = client }

    /// Gives the exchange fields that its answer gets behind its own, whichever answer it is.
    ///
    /// A handler calls this while it receives the request, before another thread knows the exchange.
    package func add(_ fields: AddedFields) { added = fields }

    /// Gives a response the added fields.
    package func complete(_ response: inout Response) {
        if let added { response.fields.append(contentsOf: added.fields) }
    }

    /// Sends the answer, unless this exchange has already been answered or has ended.
    ///
    /// The call returns before the answer is on the wire.
    package func answer(_ response: consuming Response) {
        guard fire() else { return }
        complete(&response)
        given = WireResponse(consume response)
        stage.store(.given, ordering: .releasing)
        sink.put(.single(self))
    }

    /// Has the server hand the request to its handlers again, after ``Reply/deferred``.
    ///
    /// A handler calls it once for each such reply, on any thread, and also before it has replied. It does nothing for an
    /// exchange that is over.
    package func resume() {
        guard !isOver else { return }
        sink.put(.again(self))
    }

    /// The answer that the exchange was given, once; only the sink that has the exchange calls this.
    package func takeAnswer() -> Response? { takeWireResponse()?.response }

    func takeWireResponse() -> WireResponse? { stage.load(ordering: .acquiring) == .given ? given.take() : nil }

    /// Answers all of these exchanges with one response, which is encoded once and shared.
    ///
    /// Exchanges that have already been answered or have ended get nothing. O(n) in the number of exchanges, with at
    /// most one wake-up of each loop that serves some of them.
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

    /// Gives all of these streams the same bytes, which are shared.
    ///
    /// A stream takes one chunk at a time: the caller sends the next one after ``Handlers/writable`` has named the
    /// stream. Streams that have ended get nothing. O(n) in the number of streams, with at most one wake-up of each
    /// loop that serves some of them.
    ///
    /// - Parameter isLast: whether the streams end after this chunk.
    package static func send(_ chunk: [UInt8], to streams: [Exchange], isLast: Bool = false) {
        send(StreamChunk(chunk, isLast: isLast), to: streams)
    }

    /// Sends a chunk of several streams that has been framed before.
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

    /// Cuts a stream off: the server closes the connection without the end of the body, so that the client can tell that the
    /// body is not complete.
    ///
    /// HTTP/1.0 has no end of a body, so its clients cannot tell. A stream that has ended is left as it is.
    package func cutOff() {
        guard fire() else { return }
        sink.put(.cut(self))
    }

    /// Whether the exchange has been answered or has ended, so that it would ignore an answer.
    package var isOver: Bool { stage.load(ordering: .acquiring) != .armed }

    /// Whether the client has closed its side of the connection while a handler works long on the request.
    package var hasHungUp: Bool { isHungUp.load(ordering: .relaxed) }

    /// Whether the client has closed its side of the connection, asked of the system where the loop does not watch it.
    ///
    /// In most cases the client has gone; it may also have only finished sending, as ``Expiry/hangUp`` has it.
    package var isClosedByClient: Bool {
        // POLLRDHUP, which <poll.h> has for _GNU_SOURCE only.
        let readHangUp: Int16 = 0x2000
        var asked = pollfd(fd: socket.load(ordering: .acquiring), events: readHangUp, revents: 0)
        // The system ignores -1. Where the loop closes the socket now, the exchange is over, whatever the answer is.
        return hasHungUp || poll(&asked, 1, 0) > 0
    }

    func noteSocket(_ descriptor: Int32) { socket.store(descriptor, ordering: .releasing) }

    func noteHangUp() { isHungUp.store(true, ordering: .relaxed) }

    /// Claims the right to answer; returns true to the first caller only.
    package func fire() -> Bool {
        // To resume a connection that is not suspended is undefined behaviour (Libmicrohttpd page, 4). This step lets
        // one caller only get as far as a resumption.
        stage.compareExchange(expected: .armed, desired: .fired, ordering: .acquiringAndReleasing).exchanged
    }
}

/// Fields that the answers of some exchanges get beside their own; exchanges that share the object share answers.
package final class AddedFields: Sendable {
    /// The fields.
    package let fields: HTTPFields

    /// Makes a set of fields.
    package init(_ fields: HTTPFields) { self.fields = fields }
}

extension Exchange: Hashable {
    /// Exchanges are equal when they are the same object.
    package static func == (left: Exchange, right: Exchange) -> Bool { left === right }

    /// Hashes the identity.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// A carrier of answers to clients: the mailbox of a loop, or the in-process transport.
package protocol AnswerSink: AnyObject, Sendable {
    /// Takes a transmission; the caller has claimed each exchange in it, unless it is a chunk that is not the last.
    ///
    /// Any thread may call it.
    func put(_ transmission: Transmission)
}

/// An answer or a chunk, with the exchanges whose clients get it.
///
/// The rare parts are behind a reference, because each is copied on its way to the loop.
package enum Transmission: Sendable {
    /// The answer of an exchange, which has it.
    case single(Exchange)
    /// The answer of these exchanges, which share it.
    indirect case answer([Exchange], Response)
    /// The handlers are ready for the request of this exchange.
    case again(Exchange)
    /// The end of the connection of this stream.
    case cut(Exchange)
    /// The next chunk of these streams.
    indirect case chunk([Exchange], StreamChunk)
}
