import CMicroHTTPD
import Glibc
import Threads

/// The listening sockets of a loop, and the accepted clients that libmicrohttpd does not have yet.
///
/// The loop accepts clients by itself, because libmicrohttpd does not know the parked connections, which count too.
/// libmicrohttpd gets a bounded number of new clients in each iteration, one address after the other: thousands that
/// connect together delay neither the established connections nor a new client of another address. Only the loop thread
/// uses it.
final class ClientAcceptor {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    private let context: LoopContext
    @exclusivity(unchecked) private var listeners: [ListeningSocket]
    @exclusivity(unchecked) private var waiting = ClientTurns<Int32>()
    @exclusivity(unchecked) private var addedCount = 0
    /// How many clients libmicrohttpd gets in an iteration: their first requests take a millisecond where they are
    /// expensive, and a POST that is synced to the disk needs two or three iterations.
    private static let addedCountMax = 8
    @exclusivity(unchecked) private(set) var isListening = false
    private let open: OpenConnections
    /// Whether the system has refused a client, and the time to try again has not come.
    @exclusivity(unchecked) private var awaitsRetry = false
    private static let retryTime = Duration.milliseconds(100)

    init(_ context: LoopContext, listeners: [ListeningSocket], open: OpenConnections) {
        self.context = context
        self.open = open
        self.listeners = listeners
    }

    func start() throws(ServerError) {
        var watched: [ListeningSocket] = []
        do throws(ServerError) {
            for listener in listeners {
                try context.poller.watchListener(listener.descriptor)
                watched.append(listener)
            }
        } catch {
            for listener in watched { context.poller.unwatch(listener.descriptor) }
            throw error
        }
        isListening = true
    }

    func acceptClients() {
        guard isListening else { return }
        // The connection ends in the next run of libmicrohttpd, and the poller reports the backlog again.
        if !hasRoom, open.endOldestOverCapacity() { return }
        for listener in listeners {
            guard acceptClients(of: listener) else {
                pause()
                return retryLater()
            }
        }
        // A client that waits for an iteration may become one over capacity, which makes room for the next.
        if !hasRoom, open.overCapacityCount == 0, !hasWaiting { pause() }
    }

    /// Returns false where the system refuses one.
    private func acceptClients(of listener: ListeningSocket) -> Bool {
        var address = sockaddr_storage()
        while hasRoom {
            let socket = microhttpd_accept(listener.descriptor, &address)
            guard socket < 0 else {
                take(socket, &address)
                continue
            }
            switch errno {
            case EAGAIN: return true
            case EINTR, ECONNABORTED, EPROTO: continue
            default:
                // The process has no descriptors or memory left; the clients stay in the backlog for a moment.
                context.handlers.debugLog("no client can be accepted: \(ServerError.words(for: errno))")
                return false
            }
        }
        return true
    }

    private func take(_ socket: Int32, _ address: inout sockaddr_storage) {
        guard waiting.count > 0 || addedCount >= Self.addedCountMax else { return add(socket) }
        waiting.append(socket, of: numericAddress(&address)?.host ?? "")
    }

    private func add(_ socket: Int32) {
        addedCount += 1
        context.daemon?.add(socket)
    }

    var hasWaiting: Bool { waiting.count > 0 }

    /// Asks the count first: a call of a generic function of another module costs 2,500 instructions.
    func addWaiting() {
        while addedCount < Self.addedCountMax, waiting.count > 0, let socket = waiting.next() { add(socket) }
        addedCount = 0
    }

    func listenIfPossible() {
        guard !listeners.isEmpty, !isListening, !awaitsRetry, hasRoom else { return }
        do {
            try start()
        } catch {
            context.handlers.debugLog(error.description)
            retryLater()
        }
    }

    private func retryLater() {
        awaitsRetry = true
        context.setAlarm(.listening, after: Self.retryTime)
    }

    func retry() {
        awaitsRetry = false
        listenIfPossible()
    }

    func stop() {
        pause()
        for listener in listeners { listener.close() }
        listeners = []
        // They are connected, so they are served as the others are.
        while let socket = waiting.next() { add(socket) }
    }

    private var hasRoom: Bool {
        context.gauges.connections.value + waiting.count < context.configuration.connectionsMax
            + context.configuration.overCapacityMax
    }

    private func pause() {
        guard isListening else { return }
        for listener in listeners { context.poller.unwatch(listener.descriptor) }
        isListening = false
    }
}
