import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// libmicrohttpd takes an answer only behind a head or a whole request; in between the loop sends it and shuts the
/// socket down, at which libmicrohttpd closes it; only the loop thread uses it.
final class OpenConnections {
    private let context: LoopContext
    /// By descriptor.
    private var connections: [Int32: ClientConnection] = [:]
    private(set) var overCapacityCount = 0
    private var isCheckDue = false
    private static let checkInterval = Duration.milliseconds(500)
    /// How long a connection over capacity has to send a request.
    private static let overCapacityTime = Duration.seconds(2)

    init(_ context: LoopContext) { self.context = context }

    func add(_ connection: ClientConnection) {
        connections[connection.descriptor] = connection
        if connection.overCapacitySince != nil { overCapacityCount += 1 }
        guard !isCheckDue else { return }
        isCheckDue = true
        context.setAlarm(.receiving, after: Self.checkInterval)
    }

    func remove(_ connection: ClientConnection) {
        if self[connection.descriptor] === connection { connections[connection.descriptor] = nil }
        if connection.overCapacitySince != nil { overCapacityCount -= 1 }
    }

    var all: some Sequence<ClientConnection> { connections.values }

    /// A connection that was opened earlier has a lower descriptor, as a rule, and comes first.
    private var sorted: [ClientConnection] { connections.values.sorted { $0.descriptor < $1.descriptor } }

    subscript(socket: Int32) -> ClientConnection? { connections[socket] }

    /// Returns whether there is or will be room; O(n log n) in the connections, only at the limit of connections.
    func makeRoom(for client: String) -> Bool {
        let placesCount = context.configuration.connectionsMax
        guard let largest = context.clients.largestClient(for: client, placesCount: placesCount) else { return false }
        var receiving: ClientConnection?
        for connection in sorted where connection.client == largest && !connection.isRefused {
            if case .idle = connection.phase {
                // The client takes it for the end of an idle connection, and connects again.
                connection.isRefused = true
                shutdown(connection.descriptor, Int32(SHUT_RDWR))
                return true
            }
            if connection.awaitsInput { receiving = connection }
        }
        guard let receiving else { return false }
        refuse(receiving, .connectionsExhausted)
        return true
    }

    func endOldestOverCapacity() -> Bool {
        var oldest: (since: LoopInstant, connection: ClientConnection)?
        for connection in sorted {
            guard let since = connection.overCapacitySince, !connection.isRefused else { continue }
            if oldest.map({ since < $0.since }) ?? true { oldest = (since, connection) }
        }
        guard let oldest else { return false }
        refuse(oldest.connection, .connectionsExhausted)
        return true
    }

    /// The answer goes to the socket directly, and libmicrohttpd then reads the end of the input.
    func refuse(_ connection: ClientConnection, _ problem: Problem) {
        guard !connection.isRefused else { return }
        connection.isRefused = true
        let hasAnswer = if case .discarding = connection.phase { true } else { false }
        if !hasAnswer { send(problem, on: connection) }
        // To close a socket with unread input resets the connection, and the client may lose the answer.
        microhttpd_discard_input(connection.descriptor)
        shutdown(connection.descriptor, Int32(SHUT_RD))
    }

    /// libmicrohttpd takes no answer within a body, and a client that sends on after its connection is closed could
    /// lose the answer.
    func refuseBody(of connection: ClientConnection, _ problem: Problem) {
        connection.releaseBody()
        connection.phase = .discarding(bytesLeft: context.configuration.drainBytesMax)
        connection.mustDiscard = true
        send(problem, on: connection)
    }

    private func send(_ problem: Problem, on connection: ClientConnection) {
        context.gauges.refused.add(1)
        let response = context.handlers.refuse(
            problem, connection.head.map { Request($0.head, client: connection.requestClient) })
        var answer = WireResponse(response).outgoing(isClosing: true, isHead: false, at: context.date.now())
        // An empty socket takes a problem document at once, and a client that has left an answer unread gets none.
        _ = answer.send { Outgoing.send($0, to: connection.descriptor) }
        shutdown(connection.descriptor, Int32(SHUT_WR))
    }

    /// O(n) in the connections, twice a second.
    func check() {
        let now = LoopInstant.now
        var isUsed = false
        for connection in all {
            isUsed = true
            guard !connection.isRefused else { continue }
            if isTooSlow(connection, now) {
                refuse(
                    connection,
                    Problem(.requestTimeout, "request-timeout", "the request has taken too long to arrive"))
            } else if let since = connection.overCapacitySince, since.duration(to: now) >= Self.overCapacityTime {
                // libmicrohttpd reads the end of the input, as if the client had left. A connection that is being answered
                // ends after its answer.
                shutdown(connection.descriptor, Int32(SHUT_RD))
            }
        }
        isCheckDue = isUsed
        if isUsed { context.setAlarm(.receiving, after: Self.checkInterval) }
    }

    /// libmicrohttpd tells nothing of a head before its first line is complete, so the loop asks the kernel some times
    /// how many bytes it has received; where the bytes of earlier requests are not counted, time alone decides.
    private func isTooSlow(_ connection: ClientConnection, _ now: LoopInstant) -> Bool {
        let limits = context.configuration
        guard case .idle = connection.phase else {
            // A client that sends steadily may take as long as it needs.
            let time = limits.headTime + limits.bodyTime + .seconds(connection.bodyBytes / limits.bodyBytesPerSecondMin)
            return connection.receivingSince.map { $0.duration(to: now) >= time } ?? false
        }
        if let since = connection.receivingSince { return since.duration(to: now) >= limits.headTime }
        guard connection.consumedCount != nil, !connection.isLocal else {
            return connection.idleSince.duration(to: now) >= limits.idleTimeout + limits.headTime
        }
        guard connection.askedAt.duration(to: now) >= limits.headTime / 4 else { return false }
        connection.askedAt = now
        if connection.hasReadMore { connection.receivingSince = now }
        return false
    }
}

/// The connections in libmicrohttpd that may be silent, which the loop checks for clients that have finished sending.
///
/// libmicrohttpd watches its sockets edge-triggered, and forgets the event of the end of the input where that arrived
/// together with other bytes (Libmicrohttpd page, 22). It would keep such a connection until the idle timeout, and the
/// memory of a body that never becomes complete with it. The loop looks at each connection when it has been silent for 50
/// to 100 ms: once behind a request, so a busy connection costs no system call, and from then on within one. It looks at so
/// many at a time that others wait some milliseconds at most; the rest of many have their turn later.
///
/// Only the loop thread uses it.
final class IdleConnections {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    private let context: LoopContext
    @exclusivity(unchecked) private var connections: [ClientConnection] = []
    private static let interval = Duration.milliseconds(50)
    /// A look is a system call, and costs about a microsecond.
    private static let looksMax = 1000

    init(_ context: LoopContext) { self.context = context }

    func note(_ connection: ClientConnection) {
        guard connection.idleCheck == .none else {
            connection.idleCheck = .postponed
            return
        }
        connection.idleCheck = .due
        if connections.isEmpty { setAlarm() }
        connections.append(connection)
    }

    func check() {
        var looksLeft = Self.looksMax
        var looked: [ClientConnection] = []
        connections.removeAll { connection in
            guard connection.awaitsInput else {
                connection.idleCheck = .none
                return true
            }
            guard connection.idleCheck == .due else {
                connection.idleCheck = .due
                return false
            }
            guard looksLeft > 0 else { return false }
            looksLeft -= 1
            let hasFinished = connection.hasFinishedSending
            // It makes an event, at which libmicrohttpd reads the end of the input.
            if hasFinished { shutdown(connection.descriptor, Int32(SHUT_RD)) }
            // Of fields and of the framing of chunks, the loop learns nothing.
            let looksAgain = !hasFinished && connection.receivingSince != nil
            if looksAgain { looked.append(connection) } else { connection.idleCheck = .none }
            return true
        }
        connections += looked
        if !connections.isEmpty { setAlarm() }
    }

    private func setAlarm() { context.setAlarm(.idleConnections, after: Self.interval) }
}

extension ClientConnection {
    var awaitsInput: Bool {
        switch phase {
        case .idle, .receiving, .discarding: !isClosed
        // The end of the request is noted in its turn.
        case .complete, .held, .suspended, .resumed, .answered, .queued: false
        case .waiting, .streaming, .answering, .keepAliveIdle, .closed: false
        }
    }

    fileprivate var hasFinishedSending: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) == 0
    }
}
