import CMicroHTTPD
import Glibc

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
