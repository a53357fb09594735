import CMicroHTTPD

/// The sockets that libmicrohttpd reads in a later iteration, because their clients have had their share of this one.
///
/// libmicrohttpd asks for bytes, learns that there are none yet, and waits for an event of the socket. An event comes when
/// the loop asks the kernel for one, a bounded number in each iteration and one client after the other: <doc:SocketCalls>.
/// Only the loop thread uses it.
final class DeferredReads {
    private let context: LoopContext
    private var shares = IterationShares()
    private var sockets = ClientTurns<Int32>()
    /// How many sockets are read again in an iteration; those whose clients use up their share are deferred once more.
    private static let resumedCountMax = 64

    init(_ context: LoopContext) { self.context = context }

    /// Whether a socket waits for the next iteration.
    var isEmpty: Bool { sockets.count == 0 }

    /// Begins an iteration, in which each client has a share again.
    func beginIteration() {
        shares.beginIteration()
        for _ in 0..<Self.resumedCountMax {
            guard let socket = sockets.next() else { return }
            // The socket may have been closed, and the descriptor be that of another one, which then has an event without
            // a cause.
            microhttpd_report_again(socket)
        }
    }

    /// Whether the connection is read in a later iteration; otherwise the loop works for its client from now on.
    ///
    /// A client that is alone has no share. Neither has one on a Unix socket, of which the kernel reports no event again.
    func defers(_ connection: ClientConnection) -> Bool {
        guard context.clients.count > 1, !shares.begins(connection.client, at: .now), !connection.isLocal,
            !connection.isRefused
        else { return false }
        sockets.append(connection.descriptor, of: connection.client)
        return true
    }
}
