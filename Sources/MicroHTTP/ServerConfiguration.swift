import CMicroHTTPD

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
