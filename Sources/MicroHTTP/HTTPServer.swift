import Glibc
import Synchronization

/// An HTTP/1.1 server on libmicrohttpd, with one thread of its own, or several that share its clients.
///
/// All handlers run on those threads, and all of libmicrohttpd does. Everything here may be called from any thread. A
/// server starts once; one that has started runs until ``stop(grace:)``, whether or not anybody keeps a reference.
public final class HTTPServer: Sendable {
    /// A loop's mailbox and thread.
    private struct Running {
        let inbox: Inbox
        let thread: LoopThread
    }

    private struct State {
        var wasStarted = false
        var loops: [Running] = []
    }

    private let configuration: ServerConfiguration
    private let handlers: Handlers
    private let gauges: ServerGauges
    private let state = Mutex(State())

    /// Makes a server that does nothing yet.
    ///
    /// - Parameter gauges: what the server keeps up to date; for as many loops as the configuration has.
    public init(configuration: ServerConfiguration, handlers: Handlers, gauges: ServerGauges? = nil) {
        self.configuration = configuration
        self.handlers = handlers
        self.gauges = gauges ?? ServerGauges(loops: configuration.loops)
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
        var loops: [Running] = []
        do {
            var address: BoundAddress?
            for index in gauges.loops.indices {
                // Where any port would do, the first socket's is everybody's.
                let listener = try ListeningSocket(
                    host: address?.host ?? configuration.host, port: address?.port ?? configuration.port,
                    isShared: gauges.loops.count > 1)
                address = listener.address
                loops.append(try startLoop(listener, index))
            }
            guard let address else { preconditionFailure("a server has at least one loop") }
            state.withLock { $0.loops = loops }
            return address
        } catch {
            // Nobody has connected yet: there is nothing to wait for.
            for loop in loops { loop.inbox.put(.stop(grace: .zero, done: {})) }
            for loop in loops { loop.thread.join() }
            throw error
        }
    }

    /// Closes the listening sockets: no new connections from now on; everything else goes on.
    public func stopAccepting() {
        for loop in state.withLock(\.loops) { loop.inbox.put(.stopAccepting) }
    }

    /// Stops: no new connections, an end to all waiting, a bounded time for work in hand, then the end of the threads.
    ///
    /// Waiting exchanges are ended at once by ``Handlers/expire`` with ``Expiry/stopping``. Work has `grace` to be
    /// answered, and is then ended in the same way; replies still being read by slow clients a quarter of a second
    /// later are cut. All answers close their connections. Returns when the threads have ended, and at once if the
    /// server never started. A second call waits for the same end, the sooner of the two.
    public func stop(grace: Duration = .seconds(10)) async {
        let loops = state.withLock(\.loops)
        // All are told before the first is waited for.
        let stops = loops.map { loop in
            let (ended, end) = AsyncStream<Void>.makeStream()
            if !loop.inbox.put(.stop(grace: grace, done: { end.finish() })) { end.finish() }
            return ended
        }
        for ended in stops { for await _ in ended {} }
        // The loops' last act was to say so: joining waits for the return of one function.
        for loop in state.withLock({ exchange(&$0.loops, with: []) }) { loop.thread.join() }
    }

    /// What the server is holding at the moment.
    public var statistics: Statistics {
        gauges.statistics
    }

    private func startLoop(_ listener: ListeningSocket, _ index: Int) throws(ServerError) -> Running {
        do throws(ServerError) {
            let inbox = try Inbox()
            let loop = try EventLoop(
                configuration: configuration.perLoop, index: index, handlers: handlers, inbox: inbox,
                gauges: gauges.loops[index], listener: listener)
            try loop.start()
            do throws(ServerError) {
                return Running(inbox: inbox, thread: try LoopThread { loop.run() })
            } catch {
                loop.daemon.stop()
                throw error
            }
        } catch {
            close(listener.descriptor)
            throw error
        }
    }
}
