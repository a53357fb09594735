public import Logging
internal import MicroHTTP
public import ServiceLifecycle
internal import StateHTTP
internal import StateJSON
internal import StateJournal
public import StateStore
internal import Synchronization
internal import UnixSignals

/// A store behind HTTP: the parts built and connected, started and stopped.
///
/// ```swift
/// let server = try StateServer(MyDomain(), settings: Settings(), logger: logger)
/// try await server.run()
/// ```
public struct StateServer: Service, Sendable {
    /// Where a running server listens.
    public struct Address: Sendable {
        /// The address.
        public var host: String
        /// The TCP port.
        public var port: UInt16
    }

    private let settings: Settings
    private let logger: Logger
    private let handler: RequestHandler
    private let server: HTTPServer
    private let onReady: @Sendable (Address) throws -> Void

    /// Builds a server: reads the domain's declarations, opens the journal and recovers the state.
    ///
    /// - Parameter onReady: called with the bound address once requests are taken.
    /// - Throws: `DeclarationFault`, `JournalError`, or ``SettingsFault``; each describes itself in a sentence.
    public init<D: Domain>(
        _ domain: D, settings: Settings, logger: Logger, middleware: [Middleware<D.State>] = [],
        onReady: @escaping @Sendable (Address) throws -> Void = { _ in }
    ) throws {
        self.settings = settings
        self.logger = logger
        self.onReady = onReady
        let model = try CompiledDomain(domain)
        let limits = settings.storeLimits
        let data = settings.text("data")
        let journal =
            data == "none"
            ? nil
            : try SQLiteJournal(
                directory: data, retention: settings.retention, report: { logger.log($0) },
                initial: { try model.bytes(of: model.initial) })
        let (origin, oldest) = try Self.origin(model, journal, logger, .now())
        var chain: [Middleware<D.State>] = [.validation] + middleware
        if logger.logLevel <= .debug { chain.insert(.logging { logger.log($0) }, at: 0) }
        let schedule = Schedule.live()
        let store = Store(
            domain: model, middleware: chain, limits: limits, origin: origin, now: Timestamp.now, journal: journal,
            watchLimits: settings.watchLimits, journalOldest: oldest, clock: schedule.now,
            queues: Schedule.hubQueues(),
            report: { logger.log($0) })
        let loops = settings.integer("loops")
        let gauges = ServerGauges(loops: loops)
        handler = RequestHandler(
            contract: Contract(catalogue: model.catalogue, limits: settings.contractLimits), store: store,
            journal: journal, schedule: schedule, heartbeat: settings.seconds("heartbeat_seconds"),
            streamLifetime: settings.seconds("stream_seconds_max"), gauges: gauges, logger: logger)
        if origin.cursor.version > 0 { Self.resume(store, model, logger) }
        let (host, port) = try settings.listenAddress()
        server = HTTPServer(
            configuration: ServerConfiguration(
                host: host, port: port, bodyBytesMax: settings.integer("body_bytes_max"),
                connectionsMax: settings.connectionsMax, idleTimeout: settings.seconds("idle_timeout_seconds"),
                loops: loops),
            handlers: handler.handlers, gauges: gauges)
    }

    /// Serves until the task is cancelled or the service group shuts down gracefully; then stops as the contract says.
    ///
    /// - Throws: `ServerError` when the address cannot be listened on.
    public func run() async throws {
        let address = try server.start()
        logger.info(
            "ready",
            metadata: [
                "host": .string(address.host), "port": .stringConvertible(address.port),
                "cursor": .string(handler.latest.description), "data": .string(settings.text("data")),
            ])
        try onReady(Address(host: address.host, port: address.port))
        // It ends by cancellation; that it says so by throwing is of no interest.
        await cancelWhenGracefulShutdown { try? await Task.sleep(for: .seconds(3600 * 24 * 365 * 100)) }
        await stop()
    }

    /// A way for requests to this server without a socket, whether or not it listens.
    package var inProcessTransport: InProcessTransport {
        // The numbers of no two transports of a process meet, and none meets those of the sockets.
        let part = Self.transportsCount.add(1, ordering: .relaxed).newValue
        return InProcessTransport(
            handler.handlers, firstNumber: UInt64(part) << 40 | 1 << 63, after: handler.schedule.after)
    }

    private static let transportsCount = Atomic(0)

    /// Serves until SIGTERM or SIGINT, and then stops as the contract says.
    ///
    /// For a program that runs nothing else; beside other services, run this one in their `ServiceGroup`.
    ///
    /// - Throws: `ServerError` when the address cannot be listened on.
    public func runUntilSignal() async throws {
        try await ServiceGroup(
            configuration: .init(services: [self], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        ).run()
    }

    private func stop() async {
        logger.info("stopping", metadata: ["waiters": .stringConvertible(handler.hub.watchesCount)])
        handler.beginDraining()
        server.stopAccepting()
        await handler.drain(over: .milliseconds(500))
        await server.stop(grace: settings.seconds("grace_seconds"))
        do {
            try handler.journal?.close(handler.hub.latest)
        } catch {
            // Every acknowledged commit is on the disk already; only the tidying up has failed.
            logger.warning("journal not closed", metadata: ["reason": .string("\(error)")])
        }
        logger.info("stopped", metadata: ["cursor": .string(handler.latest.description)])
    }
}

extension StateServer {
    /// Lets the domain take note that what the process before was about to do is not done any more.
    ///
    /// A restart that changes nothing leaves no commit.
    private static func resume<State>(_ store: Store<State>, _ model: CompiledDomain<State>, _ logger: Logger) {
        guard model.handles(StoreResume.type) else { return }
        var rehearsal = Transaction([.init(StoreResume())])
        rehearsal.purpose = .dryRun
        if case .wouldCommit(isChange: false, _) = store.submitNow(rehearsal),
            !model.startsEffects(StoreResume.type)
        {
            return
        }
        do throws(DispatchError) {
            try store.dispatch(StoreResume())
        } catch {
            logger.warning("resume refused", metadata: ["code": .string(error.code), "reason": .string("\(error)")])
        }
    }

    /// Where the store begins, and the oldest version that the journal can be followed from.
    private static func origin<State>(
        _ model: CompiledDomain<State>, _ journal: SQLiteJournal?, _ logger: Logger, _ now: Timestamp
    ) throws -> (Store<State>.Origin, Version?) {
        guard let journal else { return (.init(state: model.initial), nil) }
        let recovery = try journal.recover(at: now)
        for warning in recovery.warnings { logger.warning("snapshot skipped", metadata: ["reason": .string(warning)]) }
        let state: State
        do {
            state = try model.state(from: recovery.state)
        } catch {
            throw SettingsFault(
                description:
                    "the journal in this data directory does not fit the domain: at \(error.pointer) \(error.detail); was it made by another domain?"
            )
        }
        var version = recovery.version
        // A build that declares more than the one before changes what clients see: that is a commit like any other.
        if let upgrade = try model.upgrade(
            from: recovery.state, to: state, version: version + 1, epoch: journal.epoch, at: now)
        {
            try journal.record([upgrade])
            version += 1
            logger.notice("state extended for this domain", metadata: ["version": .stringConvertible(version)])
        }
        logger.info(
            "journal recovered",
            metadata: [
                "version": .stringConvertible(version), "patches": .stringConvertible(recovery.patchesCount),
                "idempotency_keys": .stringConvertible(recovery.keys.count),
            ])
        return (.init(state: state, cursor: Cursor(journal.epoch, version), keys: recovery.keys), recovery.oldest)
    }
}

extension Logger {
    /// Logs what the logging middleware tells.
    fileprivate func log(_ record: LogRecord) {
        var metadata: Logger.Metadata = [
            "action.type": .string(record.actionType), "version": .stringConvertible(record.version),
        ]
        if record.isDryRun { metadata["dry_run"] = "true" }
        if let rejection = record.rejection { metadata["rejection"] = .string(rejection.code) }
        debug(record.rejection == nil ? "action" : "action rejected", metadata: metadata)
    }

    /// Logs what nobody waits for.
    fileprivate func log(_ event: StoreEvent) {
        switch event {
        case .followUpRefused(let refused, let root):
            warning(
                "follow-up refused",
                metadata: [
                    "action.type": .string(refused.type), "cause": .string(refused.cause),
                    "root": .string(root ?? "-"), "code": .string(refused.code), "reason": .string(refused.detail),
                ])
        case .effectFailed(let type, let reason, let cause):
            warning(
                "effect failed",
                metadata: ["action.type": .string(type), "cause": .string(cause), "reason": .string(reason)])
        case .journalUnreadable(let reason): error("journal unreadable", metadata: ["reason": .string(reason)])
        }
    }

    /// Logs what a journal reports.
    fileprivate func log(_ event: JournalEvent) {
        switch event {
        case .appendFailed(let reason): error("journal failed", metadata: ["reason": .string(reason)])
        case .snapshotNotSaved(let reason): warning("snapshot not saved", metadata: ["reason": .string(reason)])
        }
    }
}
