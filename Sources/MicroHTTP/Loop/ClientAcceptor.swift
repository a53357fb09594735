import CMicroHTTPD
import Glibc

/// The listening socket of a loop, and the connections over capacity.
///
/// The loop accepts clients by itself, because libmicrohttpd does not know the parked connections, which count too.
/// Only the loop thread uses it.
final class ClientAcceptor {
    private let context: LoopContext
    private var listener: ListeningSocket?
    /// Whether the poller watches the listening socket.
    private var isListening = false
    /// Answers a connection over capacity and ends it.
    private let refuse: (ClientConnection) -> Void
    /// Whether the system has refused a client, and the time to try again has not come.
    private var awaitsRetry = false
    /// The connections over capacity, by number.
    private var overCapacity: [UInt64: ClientConnection] = [:]
    /// How long a connection over capacity has to send a request.
    private static let overCapacityTime = Duration.seconds(2)
    /// When the loop tries again after the system refused a client.
    private static let retryTime = Duration.milliseconds(100)

    init(_ context: LoopContext, listener: ListeningSocket, refuse: @escaping (ClientConnection) -> Void) {
        self.context = context
        self.refuse = refuse
        self.listener = listener
    }

    // MARK: Accepting

    /// Starts to watch the listening socket.
    func start() throws(ServerError) {
        guard let listener else { return }
        try context.poller.watchListener(listener.descriptor)
        isListening = true
    }

    /// Accepts the clients in the backlog, up to the limit of connections.
    func acceptClients() {
        guard let listener, isListening else { return }
        // A place becomes free in the next run of libmicrohttpd, and the poller reports the backlog again.
        if !hasRoom, endOldestOverCapacity() { return }
        while hasRoom {
            guard context.daemons.small.accept(from: listener.descriptor) < 0 else { continue }
            switch errno {
            case EAGAIN: return
            case EINTR, ECONNABORTED, EPROTO: continue
            default:
                // The process has no descriptors or memory left; the clients stay in the backlog for a moment.
                context.handlers.debugLog("no client can be accepted: \(ServerError.words(for: errno))")
                pause()
                retryLater()
                return
            }
        }
        if overCapacity.isEmpty { pause() }
    }

    /// Refuses the connection over capacity that has waited longest; returns false where there is none.
    private func endOldestOverCapacity() -> Bool {
        let oldest = overCapacity.filter { !$0.value.isRefused }.min { $0.key < $1.key }
        guard let connection = oldest?.value else { return false }
        refuse(connection)
        return true
    }

    /// Listens again if there is room for connections.
    func listenIfPossible() {
        guard let listener, !isListening, !awaitsRetry, hasRoom else { return }
        do {
            try context.poller.watchListener(listener.descriptor)
            isListening = true
        } catch {
            context.handlers.debugLog(error.description)
            retryLater()
        }
    }

    private func retryLater() {
        awaitsRetry = true
        context.setAlarm(.listening, after: Self.retryTime)
    }

    /// Listens again after the system refused a client.
    func retry() {
        awaitsRetry = false
        listenIfPossible()
    }

    /// Closes the listening socket.
    func stop() {
        guard let listener else { return }
        pause()
        Glibc.close(listener.descriptor)
        self.listener = nil
    }

    private var hasRoom: Bool {
        context.statistics.connections < context.configuration.connectionsMax + context.configuration.overCapacityMax
    }

    private func pause() {
        guard let listener, isListening else { return }
        context.poller.unwatch(listener.descriptor)
        isListening = false
    }

    // MARK: Connections over capacity

    var overCapacityCount: Int { overCapacity.count }

    func isOverCapacity(_ number: UInt64) -> Bool { overCapacity[number] != nil }

    /// Registers a connection over capacity under its number, and sets the alarm that ends it.
    func register(_ connection: ClientConnection, as number: UInt64) {
        overCapacity[number] = connection
        context.setAlarm(.overCapacity(number), after: Self.overCapacityTime)
    }

    func unregister(_ number: UInt64) { overCapacity[number] = nil }

    /// Ends a connection over capacity that has sent no request in time.
    func endOverCapacity(_ number: UInt64) {
        // libmicrohttpd reads the end of the input, as if the client had left. A connection that is being answered ends
        // after its answer.
        if let connection = overCapacity[number] { shutdown(connection.descriptor, Int32(SHUT_RD)) }
    }
}
