import CMicroHTTPD

/// Where a server listens, and the limits on what its clients use.
package struct ServerConfiguration: Sendable {
    /// The addresses to listen on, at least one.
    package var places: [ListeningPlace]
    /// The longest request body in bytes; the server refuses a longer one with
    /// ``TransportFault/bodyTooLarge(bytesMax:)``.
    package var bodyBytesMax: Int
    /// The most connections that the server serves at once, parked ones included.
    ///
    /// The server accepts a sixteenth more (16 to 256) over capacity: it answers each of them with
    /// ``TransportFault/connectionsExhausted`` as soon as it has read a request, and closes it. A connection over
    /// capacity that sends no request is closed after two seconds. Further clients stay in the backlog of the listening
    /// socket.
    package var connectionsMax: Int
    /// The targets that a connection over capacity may ask for, so that probes are answered.
    package var reservedTargets: Set<String> = []
    /// The peers whose requests name their clients; connections count for the peer nevertheless.
    package var trustedProxies = TrustedProxies()
    /// The most bytes of memory that clients occupy with long bodies and with long answers that they do not read.
    ///
    /// Above it the server refuses the part of a body over 64 KiB and answers over 64 KiB with
    /// ``TransportFault/memoryExhausted``, and closes connections whose clients do not read. A client that has half of it
    /// gets ``TransportFault/shareExhausted``.
    package var memoryBytesMax = 256 << 20
    /// How long a connection may send nothing between requests or within one, and how long a client may leave an answer
    /// unread.
    ///
    /// It counts in whole seconds, at least one. It does not apply to an exchange that waits: only the deadline of the exchange ends it.
    package var idleTimeout: Duration
    /// The longest request head in bytes; the server refuses a longer one with ``TransportFault/headTooLarge(bytesMax:fieldsMax:)``.
    package var headBytesMax = 12 << 10
    /// The most fields in a head; the server refuses more with ``TransportFault/headTooLarge(bytesMax:fieldsMax:)``.
    package var fieldsMax = MICROHTTPD_FIELDS_MAX
    /// The longest request target in bytes; the server refuses a longer one with ``TransportFault/targetTooLong(bytesMax:parametersMax:)``.
    package var targetBytesMax = 8000
    /// The most parameters in a target; the server refuses more with ``TransportFault/targetTooLong(bytesMax:parametersMax:)``.
    package var parametersMax = 100
    /// How long a request head may take to arrive; a slower one gets ``TransportFault/tooSlow``.
    ///
    /// The server looks twice a second, and notices a head without a complete first line in a quarter of this time: both
    /// make it longer.
    package var headTime = Duration.seconds(10)
    /// How long the body may take besides.
    package var bodyTime = Duration.seconds(30)
    /// The number of received bytes for which a body may take a second longer.
    package var bodyBytesPerSecondMin = 16 << 10
    /// How long the loop holds the connection of a request that is being worked on before it suspends the connection.
    ///
    /// A suspension costs some microseconds and, when the connection resumes, a walk over all suspended connections. An
    /// answer within this time needs no suspension. Zero suspends every such connection.
    package var parkingDelay: Duration

    /// How many loops serve, each on its own thread and with its share of ``connectionsMax``.
    ///
    /// The kernel distributes new connections over the loops. One loop is best on few cores: each further one needs a
    /// core beside the core that runs the store's turns.
    package var loops: Int

    /// Makes a configuration; the defaults suit tests and small servers.
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

    var headFault: TransportFault { .headTooLarge(bytesMax: headBytesMax, fieldsMax: fieldsMax) }

    var targetFault: TransportFault { .targetTooLong(bytesMax: targetBytesMax, parametersMax: parametersMax) }

    var perLoop: ServerConfiguration {
        var share = self
        share.connectionsMax = max(1, connectionsMax / max(1, loops))
        return share
    }

    var overCapacityMax: Int { min(Self.overCapacityCeiling, max(16, connectionsMax / 16)) }
    private static let overCapacityCeiling = 256

    /// The largest ``connectionsMax`` that this process's hard limit of open files allows.
    package static var connectionsAllowed: Int { max(16, DescriptorLimit.connectionsAllowed - overCapacityCeiling) }

    /// How many bytes of a refused body the server reads and discards before it closes the connection.
    var drainBytesMax: Int { max(1 << 20, bodyBytesMax) }
}
