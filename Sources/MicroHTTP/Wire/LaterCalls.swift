import CMicroHTTPD

/// The sockets that libmicrohttpd uses in a later iteration, because their clients have had their share of this one.
///
/// libmicrohttpd learns that there are no bytes yet, or that there is no room for a long answer, and waits for an event of
/// the socket. An event comes when the loop asks the kernel for one, a bounded number in each iteration and one client
/// after the other: <doc:SocketCalls>. Only the loop thread uses it.
final class LaterCalls {
    /// What libmicrohttpd does with a socket.
    enum Call: Sendable { case receive, send }

    private let context: LoopContext
    private var shares = IterationShares()
    private var calls = ClientTurns<(socket: Int32, call: Call)>()
    /// How many sockets are used again in an iteration; those whose clients use up their share come later still.
    private static let resumedCountMax = 64

    init(_ context: LoopContext) { self.context = context }

    /// Whether a socket waits for the next iteration.
    var isEmpty: Bool { calls.count == 0 }

    /// Begins an iteration, in which each client has a share again.
    func beginIteration() {
        shares.beginIteration()
        for _ in 0..<Self.resumedCountMax {
            guard let (socket, call) = calls.next() else { return }
            // The socket may have been closed, and the descriptor be that of another one, which then has an event without
            // a cause.
            switch call {
            case .receive: microhttpd_report_readable(socket)
            case .send: microhttpd_report_writable(socket)
            }
        }
    }

    /// Whether libmicrohttpd uses the socket in a later iteration; otherwise the loop works for its client from now on.
    ///
    /// A client that is alone has no share. Neither has one on a Unix socket, of which the kernel reports no event again.
    func postpones(_ connection: ClientConnection, _ call: Call) -> Bool {
        guard context.clients.count > 1, !shares.begins(connection.client, at: .now), !connection.isLocal,
            !connection.isRefused
        else { return false }
        calls.append((connection.descriptor, call), of: connection.client)
        return true
    }
}
