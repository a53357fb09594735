internal import Dispatch
internal import HTTPMessages
internal import HTTPTypes
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// Does what the contract decides: asks the store, looks at the board, parks, and answers.
///
/// Threads: requests and expiries come on the transport's loop thread, outcomes and publications on the store's queue,
/// what has to be read from the disk on a queue of its own.
final class Desk: Sendable {
    let contract: Contract
    let board: Board
    let journal: Journal?
    let logger: Logger
    let door: StoreDoor
    /// Few, so that many who ask for what takes long take turns.
    let readers = (0..<4).map { DispatchQueue(label: "storekeeper.reader.\($0)") }
    /// Tells those whom a commit concerns, where they are thousands.
    let teller = DispatchQueue(label: "storekeeper.teller")
    let readingCount = Atomic(0)
    static let readingMax = 1024
    /// Requests that wait, but whose value is still being put together before they can be parked.
    let preparing = Mutex<[Exchange: ReadRequest]>([:])
    /// Requests whose answer is put off until a burst of changes is over.
    let bursts = Mutex<[Exchange: Burst]>([:])
    let streams = Mutex<[Exchange: Stream]>([:])
    /// How long a stream may be silent, and how long it lives at most.
    let heartbeat: Duration
    let streamLifetime: Duration
    /// POSTs that wait for what they cause.
    let settling = Mutex<[Exchange: Settling]>([:])
    let server = Mutex<HTTPServer?>(nil)
    let isDraining = Atomic(false)
    /// Answers that say what is now hold until the next commit.
    let freshness = Freshness()
    let counters = Counters()

    init(
        contract: Contract, board: Board, journal: Journal?, door: StoreDoor, heartbeat: Duration,
        streamLifetime: Duration, logger: Logger
    ) {
        self.contract = contract
        self.board = board
        self.journal = journal
        self.door = door
        self.heartbeat = heartbeat
        self.streamLifetime = streamLifetime
        self.logger = logger
    }

    /// Names the transport that carries the answers of those who wait; nil once it has stopped.
    func attach(_ server: HTTPServer?) {
        self.server.withLock { $0 = server }
    }

    var handlers: Handlers {
        var handlers = Handlers(
            receive: { self.receive($0, $1) },
            expire: { self.expire($0, $1) },
            // Without a journal, a turn for all that a pass has brought is over sooner than another thread is awake.
            passEnded: { self.journal == nil ? self.door.flushNow() : self.door.flush() },
            written: { self.written($0) },
            quiet: { self.quiet($0) },
            refuse: { self.refuse($0, $1) },
            remark: { self.logger.debug("transport", metadata: ["remark": .string($0)]) })
        handlers.freshness = freshness
        return handlers
    }

    var position: HeadPosition {
        let (head, oldest) = board.position
        return HeadPosition(head: head, oldest: oldest)
    }

    private func receive(_ request: Request, _ exchange: Exchange) -> Reply {
        let requestID = Self.requestID(of: request, exchange)
        switch contract.answer(request, position: position, requestID: requestID) {
        case .respond(let response):
            // A problem names its request.
            return request.method == .get && response.status == .ok ? .reusable(response) : .now(response)
        case .dispatch(let dispatch): return self.dispatch(dispatch, exchange, requestID)
        case .read(let read): return self.read(read, exchange)
        case .follow(let follow): return self.follow(follow, exchange)
        case .stream(let stream): return self.stream(stream, exchange)
        case .outcome(let id, let scope, let style): return outcome(id, scope, style, exchange, requestID)
        case .live: return .now(Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ok\n".utf8)))
        case .ready: return .now(readiness(requestID))
        case .metrics: return .now(metrics())
        }
    }

    private static func requestID(of request: Request, _ exchange: Exchange) -> String {
        guard let given = request.fields[.requestID], (1...128).contains(given.utf8.count),
            given.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return "r" + String(exchange.id) }
        return given
    }

    func respond(_ problem: Problem, _ requestID: String) -> Response {
        var response = contract.response(to: problem, head: position.head, requestID: requestID)
        if isDraining.load(ordering: .relaxed) { response.connection = .close }
        return response
    }

    private func refuse(_ fault: TransportFault, _ request: Request?) -> Response {
        let problem =
            switch fault {
            case .malformed(let detail): Problem(.badRequest, "malformed-request", detail)
            case .unsupportedTransferCoding:
                Problem(
                    .notImplemented, "transfer-coding", "a body can be chunked or have a Content-Length, nothing else")
            case .bodyTooLarge(let limit): Problem.tooLarge(limit: limit)
            case .connectionsExhausted:
                Problem(
                    .serviceUnavailable, "too-many-connections",
                    "this server has as many connections as it allows; come back in a moment",
                    fields: [.retryAfter: "1"])
            }
        return contract.response(
            to: problem, head: position.head,
            requestID: request?.fields[.requestID].map { String($0.prefix(128)) } ?? "-")
    }
}
