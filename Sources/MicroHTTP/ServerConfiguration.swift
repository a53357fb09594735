/// Where a server listens and what it lets a client use up.
public struct ServerConfiguration: Sendable {
    /// The address or name to listen on.
    ///
    /// `0.0.0.0` is every IPv4 address; `::` is every address of both kinds, and falls back to `0.0.0.0` where the
    /// machine has no IPv6, as in many containers. For a name with several addresses the first IPv4 one is taken.
    public var host: String
    /// The TCP port; 0 lets the system pick a free one, which ``HTTPServer/start()`` returns.
    public var port: UInt16
    /// The longest request body in bytes; one byte more is ``TransportFault/bodyTooLarge(bytesMax:)``.
    public var bodyBytesMax: Int
    /// The connections served at once, parked ones among them.
    ///
    /// Above it a connection is still accepted, answered ``TransportFault/connectionsExhausted`` as soon as its request
    /// is there, and closed. A sixteenth on top (16 to 256) is set aside for that, and a connection that sends
    /// nothing holds such a place for two seconds only; while all of them are taken, clients wait to be accepted.
    public var connectionsMax: Int
    /// How long a connection may stay silent between requests or in the middle of one; whole seconds, at least one.
    ///
    /// A parked exchange is not silent: only its own deadline ends it.
    public var idleTimeout: Duration
    /// The memory for one connection's request head and response head, in bytes.
    ///
    /// libmicrohttpd itself refuses longer heads, with 414 or 431. Half of this, at least, is room for the request.
    public var connectionMemoryBytes: Int
    /// How long work in hand may keep its connection in the loop before it is suspended.
    ///
    /// Suspending costs some microseconds and, at each resumption, a walk over all suspended connections. Work that is
    /// done within this time is answered without. Zero suspends everything.
    public var parkingDelay: Duration

    /// How many threads serve, each with its own clients and its share of the connections; the kernel deals them out.
    ///
    /// One is best on few cores: each more needs a core of its own beside the one that the store's turns run on.
    public var loops: Int

    /// Makes a configuration; the defaults suit a test and a small server.
    public init(
        host: String = "127.0.0.1", port: UInt16 = 0, bodyBytesMax: Int = 1 << 20, connectionsMax: Int = 1024,
        idleTimeout: Duration = .seconds(60), connectionMemoryBytes: Int = 8 << 10,
        parkingDelay: Duration = .milliseconds(2), loops: Int = 1
    ) {
        self.host = host
        self.port = port
        self.bodyBytesMax = bodyBytesMax
        self.connectionsMax = connectionsMax
        self.idleTimeout = idleTimeout
        self.connectionMemoryBytes = connectionMemoryBytes
        self.parkingDelay = parkingDelay
        self.loops = loops
    }

    /// What each of the loops keeps to.
    var perLoop: ServerConfiguration {
        var share = self
        share.connectionsMax = max(1, connectionsMax / max(1, loops))
        return share
    }

    /// The places for connections above the cap, which are there to be told so.
    var surplusConnectionsMax: Int { min(Self.surplusMost, max(16, connectionsMax / 16)) }
    private static let surplusMost = 256

    /// The most connections that this process's hard limit of open files has room for.
    public static var connectionsAllowed: Int { max(16, DescriptorLimit.connectionsAllowed - surplusMost) }

    /// The most body bytes read and thrown away after a chunked body has passed the cap, before the connection is cut.
    var drainBytesMax: Int { max(1 << 20, bodyBytesMax) }
}
