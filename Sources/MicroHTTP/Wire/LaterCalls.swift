import CMicroHTTPD

/// The sockets that libmicrohttpd uses in a later iteration, because their clients have had their share of this one.
///
/// libmicrohttpd learns that there are no bytes yet, or that there is no room for a long answer, and waits for an event of
/// the socket. An event comes when the loop asks the kernel for one, a bounded number in each iteration, one client after the
/// other, and the sockets of a client in the order in which they began to wait: `SocketCalls.md`. Only the loop thread uses
/// it.
final class LaterCalls {
    /// What libmicrohttpd does with a socket.
    enum Use: Sendable { case receive, send }

    private struct Call: Hashable {
        let socket: Int32
        let use: Use
    }

    private let context: LoopContext
    private var shares = IterationShares()
    /// The sockets that wait for their turn.
    private var waiting = ClientTurns<Call>()
    /// The same sockets, for a lookup: libmicrohttpd asks again for a socket that waits when more comes on it.
    private var isWaiting: Set<Call> = []
    /// The sockets whose turn is in this iteration, and that have not been used in it.
    private var resumed: Set<Call> = []
    /// Those of them whose clients had had their share before they were used: their turn comes first in the next iteration.
    private var again: [Call] = []
    /// How many sockets had their turn in the last iteration, and were used.
    private var usedCount = 0

    init(_ context: LoopContext) { self.context = context }

    /// Whether a socket waits for the next iteration.
    var isEmpty: Bool { waiting.count == 0 && again.isEmpty }

    /// Begins an iteration, in which each client has a share again.
    func beginIteration() {
        shares.beginIteration()
        resumed.removeAll(keepingCapacity: true)
        guard !isEmpty else { return }
        // Somewhat more than the shares are enough for, since each costs two system calls.
        let countMax = min(max(8, 2 * usedCount), 64)
        usedCount = 0
        var turn = again
        again.removeAll(keepingCapacity: true)
        while turn.count < countMax, let next = waiting.next() { turn.append(next) }
        for call in turn {
            isWaiting.remove(call)
            resumed.insert(call)
            // The socket may have been closed, and the descriptor be that of another one, which then has an event without
            // a cause.
            switch call.use {
            case .receive: microhttpd_report_readable(call.socket)
            case .send: microhttpd_report_writable(call.socket)
            }
        }
    }

    /// Whether libmicrohttpd uses the socket in a later iteration; otherwise the loop works for its client from now on.
    ///
    /// A client that is alone has no share. Neither has a client on a Unix socket, because the kernel does not report such
    /// a socket again when the loop asks for it.
    func postpones(_ connection: ClientConnection, _ use: Use) -> Bool {
        guard context.clients.count > 1, !connection.isLocal, !connection.isRefused else { return false }
        let (call, client) = (Call(socket: connection.descriptor, use: use), connection.client)
        let isItsTurn = resumed.remove(call) != nil
        // A socket that has not waited goes behind those of its client that have.
        if isItsTurn || !waiting.hasWork(of: client), shares.begins(client, at: .now) {
            if isItsTurn { usedCount += 1 }
            return false
        }
        if isItsTurn {
            again.append(call)
        } else if isWaiting.insert(call).inserted {
            waiting.append(call, of: client)
        }
        return true
    }
}
