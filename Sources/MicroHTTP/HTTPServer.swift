import CMicroHTTPD
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

package struct ServerConfiguration: Sendable {
    package var places: [ListeningPlace]
    package var bodyBytesMax: Int
    /// Counts parked ones; a sixteenth more (16 to 256) get ``Problem/connectionsExhausted`` for their request,
    /// or are closed after two seconds, and further clients stay in the backlog.
    package var connectionsMax: Int
    /// Targets that are also answered to connections over capacity, for probes.
    package var reservedTargets: Set<String> = []
    /// Requests of these peers count for the clients that they name; connections count for the peer nevertheless.
    package var trustedProxies = TrustedProxies()
    /// Above it the server refuses bodies and answers over 64 KiB with ``Problem/memoryExhausted``, and closes
    /// connections whose clients do not read; a client with half of it gets ``Problem/tooManyBytes``.
    package var memoryBytesMax = 256 << 20
    /// Bounds silence and unread answers, in whole seconds, at least one; an exchange that waits ends by its deadline
    /// only.
    package var idleTimeout: Duration
    package var headBytesMax = 12 << 10
    package var fieldsMax = MICROHTTPD_FIELDS_MAX
    package var targetBytesMax = 8000
    package var parametersMax = 100
    /// The server looks twice a second, and notices a head without a complete first line in a quarter of this time:
    /// both make it longer.
    package var headTime = Duration.seconds(10)
    /// The body has this time behind ``headTime``.
    package var bodyTime = Duration.seconds(30)
    /// A body may take a second longer for so many received bytes.
    package var bodyBytesPerSecondMin = 16 << 10
    /// The loop holds a connection for so long before it suspends it: a suspension costs some microseconds and, at its
    /// end, a walk over all others; zero suspends every connection.
    package var parkingDelay: Duration

    /// Each has its own thread and its share of ``connectionsMax``; one loop is best on few cores: each further one
    /// needs a core beside that of the store's turns.
    package var loops: Int

    package init(
        host: String = "127.0.0.1", port: UInt16 = 0, bodyBytesMax: Int = 1 << 20, connectionsMax: Int = 1024,
        idleTimeout: Duration = .seconds(60), parkingDelay: Duration = .milliseconds(2), loops: Int = 1
    ) {
        places = [.address(host: host, port: port)]
        self.bodyBytesMax = bodyBytesMax
        self.connectionsMax = connectionsMax
        self.idleTimeout = idleTimeout
        self.parkingDelay = parkingDelay
        self.loops = loops
    }

    var perLoop: ServerConfiguration {
        var share = self
        share.connectionsMax = max(1, connectionsMax / max(1, loops))
        return share
    }

    var overCapacityMax: Int { min(Self.overCapacityCeiling, max(16, connectionsMax / 16)) }
    private static let overCapacityCeiling = 256

    package static var connectionsAllowed: Int { max(16, DescriptorLimit.connectionsAllowed - overCapacityCeiling) }

    /// So many bytes of a refused body are read, so that its client does not lose the answer.
    var drainBytesMax: Int { max(1 << 20, bodyBytesMax) }
}

package struct ServerError: Error, Equatable, CustomStringConvertible {
    package let isOfAddress: Bool
    /// A sentence for the operator.
    package let description: String

    static func hostUnknown(host: String, reason: String) -> ServerError {
        let expected = "expected an address of this machine, such as 127.0.0.1, 0.0.0.0 or ::"
        return ServerError(isOfAddress: true, description: "cannot listen on \(host): \(reason); \(expected)")
    }

    static func unavailable(reason: String) -> ServerError {
        ServerError(isOfAddress: false, description: "the server could not be set up: \(reason)")
    }

    static func words(for code: Int32) -> String {
        String(cString: strerror(code))
    }
}

enum DescriptorLimit {
    /// The descriptors for everything but connections: the journal, logs, standard streams, epoll, and a margin.
    private static let reserve = 128

    /// Nil for the reason in `errno`.
    private static var limit: rlimit? {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }

    static var connectionsAllowed: Int { limit.map { Int(clamping: $0.rlim_max) - reserve } ?? 0 }

    /// A process that reaches the limit makes libmicrohttpd spin (Libmicrohttpd page, 16).
    static func makeRoom(connections: Int) throws(ServerError) {
        let needed = rlim_t(connections + reserve)
        guard var limit else {
            throw .unavailable(reason: "getrlimit: \(ServerError.words(for: errno))")
        }
        guard limit.rlim_cur < needed else { return }
        let allowed = Int(limit.rlim_max)
        limit.rlim_cur = needed
        // Only a privileged process may exceed the hard limit; setrlimit fails for any other.
        limit.rlim_max = max(limit.rlim_max, needed)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw ServerError(
                isOfAddress: false,
                description: "the connections need \(needed) open files and this process may have \(allowed); "
                    + "raise the hard limit (ulimit -Hn) or lower the number of connections")
        }
    }
}
