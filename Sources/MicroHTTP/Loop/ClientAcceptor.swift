import CMicroHTTPD
import Glibc

/// The listening sockets of a loop, and the connections over capacity.
///
/// The loop accepts clients by itself, because libmicrohttpd does not know the parked connections, which count too.
/// Only the loop thread uses it.
final class ClientAcceptor {
    private let context: LoopContext
    private var listeners: [ListeningSocket]
    /// Whether the poller watches the listening sockets.
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

    init(_ context: LoopContext, listeners: [ListeningSocket], refuse: @escaping (ClientConnection) -> Void) {
        self.context = context
        self.refuse = refuse
        self.listeners = listeners
    }

    // MARK: Accepting

    /// Starts to watch the listening sockets.
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

    /// Accepts the clients in the backlogs, up to the limit of connections.
    func acceptClients() {
        guard isListening else { return }
        // A place becomes free in the next run of libmicrohttpd, and the poller reports the backlog again.
        if !hasRoom, endOldestOverCapacity() { return }
        for listener in listeners {
            guard acceptClients(of: listener) else {
                pause()
                return retryLater()
            }
        }
        if !hasRoom, overCapacity.isEmpty { pause() }
    }

    /// Accepts the clients in one backlog; returns false where the system refuses one.
    private func acceptClients(of listener: ListeningSocket) -> Bool {
        while hasRoom {
            guard context.daemons.small.accept(from: listener.descriptor) < 0 else { continue }
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

    /// Refuses the connection over capacity that has waited longest; returns false where there is none.
    private func endOldestOverCapacity() -> Bool {
        let oldest = overCapacity.filter { !$0.value.isRefused }.min { $0.key < $1.key }
        guard let connection = oldest?.value else { return false }
        refuse(connection)
        return true
    }

    /// Listens again if there is room for connections.
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

    /// Listens again after the system refused a client.
    func retry() {
        awaitsRetry = false
        listenIfPossible()
    }

    /// Closes the listening sockets.
    func stop() {
        pause()
        for listener in listeners { listener.close() }
        listeners = []
    }

    private var hasRoom: Bool {
        context.statistics.connections < context.configuration.connectionsMax + context.configuration.overCapacityMax
    }

    private func pause() {
        guard isListening else { return }
        for listener in listeners { context.poller.unwatch(listener.descriptor) }
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
