import Glibc
public import HTTPMessages
import Synchronization

/// An HTTP/1.1 server on libmicrohttpd, with one thread of its own.
///
/// All handlers run on that thread, and all of libmicrohttpd does. Everything here may be called from any thread. A
/// server starts once; one that has started runs until ``stop(grace:)``, whether or not anybody keeps a reference.
public final class HTTPServer: Sendable {
    private struct State {
        var wasStarted = false
        var inbox: Inbox?
        var thread: LoopThread?
    }

    private let configuration: ServerConfiguration
    private let handlers: Handlers
    private let gauges = Gauges()
    private let state = Mutex(State())

    /// Makes a server that does nothing yet.
    public init(configuration: ServerConfiguration, handlers: Handlers) {
        self.configuration = configuration
        self.handlers = handlers
    }

    /// Listens and serves; returns where.
    ///
    /// Changes two things of the whole process: SIGPIPE is ignored, since a client that leaves must not end it, and
    /// the limit of open files is raised if the connections need it.
    public func start() throws(ServerError) -> BoundAddress {
        guard state.withLock({ !exchange(&$0.wasStarted, with: true) }) else { throw .alreadyStarted }
        // MICROHTTPD.md 27: libmicrohttpd blocks SIGPIPE only in threads that it makes itself.
        signal(SIGPIPE, SIG_IGN)
        try DescriptorLimit.makeRoom(
            connections: configuration.connectionsMax + configuration.surplusConnectionsMax)
        let inbox = try Inbox()
        let listener = try ListeningSocket(host: configuration.host, port: configuration.port)
        let thread = try startLoop(inbox, listener)
        state.withLock { state in
            state.inbox = inbox
            state.thread = thread
        }
        return listener.address
    }

    /// Answers all of these exchanges with one response, which is encoded once and shared.
    ///
    /// Those that have been answered or have ended before are left out. O(n) in the number of exchanges, with one
    /// wake-up of the loop.
    public func answer(_ exchanges: [Exchange], with response: Response) {
        let mine = exchanges.filter { $0.fire() }
        guard !mine.isEmpty else { return }
        state.withLock(\.inbox)?.put(.answers(mine, response))
    }

    /// Closes the listening socket: no new connections from now on; everything else goes on.
    public func stopAccepting() {
        state.withLock(\.inbox)?.put(.stopAccepting)
    }

    /// Stops: no new connections, an end to all waiting, a bounded time for work in hand, then the end of the thread.
    ///
    /// Waiting exchanges are ended at once by ``Handlers/expire`` with ``Expiry/stopping``. Work has `grace` to be
    /// answered, and is then ended in the same way; replies still being read by slow clients a quarter of a second
    /// later are cut. All answers close their connections. Returns when the thread has ended, and at once if the
    /// server never started. A second call waits for the same end, the sooner of the two.
    public func stop(grace: Duration = .seconds(10)) async {
        guard let inbox = state.withLock(\.inbox) else { return }
        await withCheckedContinuation { continuation in
            let willStop = inbox.put(.stop(grace: grace, done: { continuation.resume() }))
            if !willStop { continuation.resume() }
        }
        // The loop's last act was to say so: joining waits for the return of one function.
        state.withLock { $0.thread.take() }?.join()
    }

    /// What the server is holding at the moment.
    public var statistics: Statistics { gauges.statistics }

    private func startLoop(_ inbox: Inbox, _ listener: ListeningSocket) throws(ServerError) -> LoopThread {
        let loop: EventLoop
        do {
            loop = try EventLoop(
                configuration: configuration, handlers: handlers, inbox: inbox, gauges: gauges, listener: listener)
        } catch {
            close(listener.descriptor)
            throw error
        }
        // From here the socket is libmicrohttpd's, which closes it when it stops and, mostly, when it fails to start.
        let daemon = try loop.makeDaemon(listener: listener)
        do {
            return try LoopThread { loop.run(daemon) }
        } catch {
            daemon.stop()
            throw error
        }
    }
}
