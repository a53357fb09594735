import Glibc
import Synchronization
import Threads

/// An HTTP/1.1 server on libmicrohttpd, with one thread of its own, or several that share its clients.
///
/// All handlers and all of libmicrohttpd run on those threads. Any thread may call the methods of the server. A server
/// starts once; it then runs until ``stop(grace:)``, even if the caller drops its last reference.
package final class HTTPServer: Sendable {
    private typealias Running = (mailbox: LoopMailbox, thread: SystemThread)

    private struct State {
        var wasStarted = false
        var loops: [Running] = []
        var files: [SocketFile] = []
    }

    private let configuration: ServerConfiguration
    private let handlers: Handlers
    private let gauges: ServerGauges
    private let state = Mutex(State())

    /// Opens no socket before ``start()``.
    package init(configuration: ServerConfiguration, handlers: Handlers, gauges: ServerGauges? = nil) {
        self.configuration = configuration
        self.handlers = handlers
        self.gauges = gauges ?? ServerGauges(loops: configuration.loops, memoryBytesMax: configuration.memoryBytesMax)
    }

    /// Ignores SIGPIPE in the whole process, so that a client that leaves does not end it, and raises the soft limit of
    /// open files where the connections need more; after an error no thread and no socket is left.
    package func start() throws(ServerError) -> [BoundAddress] {
        guard state.withLock({ !exchange(&$0.wasStarted, with: true) }) else {
            throw ServerError(isOfAddress: false, description: "this server has been started before; make a new one")
        }
        // Libmicrohttpd page, 27: libmicrohttpd blocks SIGPIPE only in threads that it makes itself.
        signal(SIGPIPE, SIG_IGN)
        try DescriptorLimit.makeRoom(
            connections: configuration.connectionsMax + configuration.overCapacityMax)
        var first: [ListeningSocket] = []
        var files: [SocketFile] = []
        var loops: [Running] = []
        do {
            for index in gauges.loops.indices {
                let listeners = try listen(as: first)
                if index == 0 {
                    first = listeners
                    files = listeners.compactMap(\.file)
                }
                loops.append(try startLoop(listeners, index))
            }
            state.withLock {
                $0.loops = loops
                $0.files = files
            }
            return first.map(\.address)
        } catch {
            // No client has been served yet, so the loops that have started need no grace time.
            for loop in loops { loop.mailbox.put(.stop(grace: .zero, done: {})) }
            for loop in loops { loop.thread.join() }
            for file in files { file.remove() }
            throw error
        }
    }

    /// With port 0, the system chooses the port of the first socket, and the other sockets share it.
    private func listen(as first: [ListeningSocket]) throws(ServerError) -> [ListeningSocket] {
        var listeners: [ListeningSocket] = []
        do throws(ServerError) {
            for (index, place) in configuration.places.enumerated() {
                let isShared = gauges.loops.count > 1
                listeners.append(
                    try first.isEmpty ? ListeningSocket(place, isShared: isShared) : first[index].another())
            }
            return listeners
        } catch {
            for listener in listeners {
                if first.isEmpty { listener.file?.remove() }
                listener.close()
            }
            throw error
        }
    }

    package static func checkAddress(host: String, port: UInt16, loops: Int = 1) throws(ServerError) {
        close(try ListeningSocket(.address(host: host, port: port), isShared: loops > 1).descriptor)
    }

    package func stopAccepting() {
        let (loops, files) = state.withLock { state in
            (state.loops, exchange(&state.files, with: []))
        }
        for file in files { file.remove() }
        for loop in loops { loop.mailbox.put(.stopAccepting) }
    }

    /// Ends waiting exchanges at once, with ``Expiry/stopping``, and those that are being worked on after `grace`; a
    /// quarter of a second later the server closes connections whose clients have not read their answers.
    ///
    /// The call returns when the threads have ended; of several calls, the earliest end applies.
    package func stop(grace: Duration = .seconds(10)) async {
        stopAccepting()
        let loops = state.withLock(\.loops)
        // All loops get the request to stop before the first is awaited, so that their grace times overlap.
        let stops = loops.map { loop in
            let (ended, end) = AsyncStream<Void>.makeStream()
            if !loop.mailbox.put(.stop(grace: grace, done: { end.finish() })) { end.finish() }
            return ended
        }
        for ended in stops { for await _ in ended {} }
        // Each loop calls `done` as its last statement: to join its thread takes no more than the return of a function.
        for loop in state.withLock({ exchange(&$0.loops, with: []) }) { loop.thread.join() }
    }

    package var statistics: Statistics {
        gauges.statistics
    }

    private func startLoop(_ listeners: [ListeningSocket], _ index: Int) throws(ServerError) -> Running {
        do throws(ServerError) {
            let mailbox = try LoopMailbox()
            let loop = try EventLoop(
                configuration: configuration.perLoop, index: index, handlers: handlers, memory: gauges.memory,
                mailbox: mailbox, gauges: gauges.loops[index], listeners: listeners)
            try loop.start()
            do throws(SystemThread.Unavailable) {
                return (mailbox, try SystemThread { loop.run() })
            } catch {
                loop.abandon()
                throw .unavailable(reason: "pthread_create: \(ServerError.words(for: error.code))")
            }
        } catch {
            for listener in listeners { listener.close() }
            throw error
        }
    }
}
