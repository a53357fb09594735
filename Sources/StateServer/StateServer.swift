public import Logging
internal import MicroHTTP
public import ServiceLifecycle
internal import StateHTTP
internal import StateJSON
internal import StateJournal
public import StateStore
internal import Synchronization
internal import UnixSignals

/// A store behind HTTP: it builds and connects the parts, runs them and stops them.
///
/// ```swift
/// let server = try StateServer(MyDomain(), settings: Settings(), logger: logger)
/// try await server.run()
/// ```
public struct StateServer: Service, Sendable {
    /// The address that a running server listens on.
    public struct Address: Sendable {
        /// The IP address, as text.
        public var host: String
        /// The TCP port.
        public var port: UInt16
    }

    private let settings: Settings
    private let logger: Logger
    private let handler: RequestHandler
    private let server: HTTPServer
    private let onReady: @Sendable (Address) throws -> Void

    /// Builds a server: compiles the domain, opens the journal and recovers the state.
    ///
    /// The time is proportional to the size of the state and the number of patches after the newest snapshot.
    ///
    /// - Parameters:
    ///   - domain: the state, actions and reducers to serve.
    ///   - settings: the limits, addresses and directories; see ``Setting/all``.
    ///   - logger: takes the server's log lines.
    ///   - middleware: runs after the server's own validation, in array order.
    ///   - onReady: takes the bound address, once the server takes requests.
    /// - Throws: `DeclarationFault`, `JournalError`, or ``SettingsFault``; each describes itself in a sentence.
    public init<D: Domain>(
        _ domain: D, settings: Settings, logger: Logger, middleware: [Middleware<D.State>] = [],
        onReady: @escaping @Sendable (Address) throws -> Void = { _ in }
    ) throws {
        self.settings = settings
        self.logger = logger
        self.onReady = onReady
        let compiled = try CompiledDomain(domain)
        let limits = settings.storeLimits
        let data = settings.text("data")
        let journal =
            data == "none"
            ? nil
            : try SQLiteJournal(
                directory: data, retention: settings.retention, report: { logger.log($0) },
                initial: { try compiled.bytes(of: compiled.initial) })
        let (origin, oldest) = try Self.origin(compiled, journal, logger, .now())
        var chain: [Middleware<D.State>] = [.validation] + middleware
        if logger.logLevel <= .debug { chain.insert(.logging { logger.log($0) }, at: 0) }
        let schedule = Schedule.live()
        let store = Store(
            domain: compiled, middleware: chain, limits: limits, origin: origin, now: Timestamp.now, journal: journal,
            watchLimits: settings.watchLimits, journalOldest: oldest, clock: schedule.now, queues: Schedule.hubQueues(),
            report: { logger.log($0) })
        let loops = settings.integer("loops")
        let gauges = ServerGauges(loops: loops, memoryBytesMax: settings.integer("memory_bytes_max"))
        handler = RequestHandler(
            contract: Contract(catalogue: compiled.catalogue, limits: settings.contractLimits), store: store,
            journal: journal, schedule: schedule, heartbeat: settings.seconds("heartbeat_seconds"),
            streamLifetime: settings.seconds("stream_seconds_max"), gauges: gauges, logger: logger)
        if origin.cursor.version > 0 { Self.resume(store, compiled, logger) }
        let (host, port) = try settings.listenAddress()
        var configuration = ServerConfiguration(
            host: host, port: port, bodyBytesMax: settings.integer("body_bytes_max"),
            connectionsMax: settings.connectionsMax, idleTimeout: settings.seconds("idle_timeout_seconds"),
            loops: loops)
        configuration.memoryBytesMax = settings.integer("memory_bytes_max")
        configuration.headTime = settings.seconds("request_head_seconds")
        configuration.bodyTime = settings.seconds("request_body_seconds")
        configuration.reservedTargets = ["/livez", "/readyz", "/metrics"]
        server = HTTPServer(configuration: configuration, handlers: handler.handlers, gauges: gauges)
    }

    /// Serves until the task is cancelled or the service group shuts down; then drains and closes the journal.
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
        // The sleep ends by cancellation, and its error says only that.
        await cancelWhenGracefulShutdown { try? await Task.sleep(for: .seconds(3600 * 24 * 365 * 100)) }
        await stop()
    }

    /// A new in-process transport to this server, which need not run.
    package var inProcessTransport: InProcessTransport {
        // Exchange numbers must be unique: each transport gets a range of its own, above those of the sockets.
        let part = Self.transportsCount.add(1, ordering: .relaxed).newValue
        return InProcessTransport(
            handler.handlers, firstNumber: UInt64(part) << 40 | 1 << 63, after: handler.schedule.after)
    }

    private static let transportsCount = Atomic(0)

    /// Serves until SIGTERM or SIGINT; then drains and closes the journal.
    ///
    /// A program with further services runs this one in their `ServiceGroup` with ``run()``.
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
            // Every acknowledged commit is on the disk already; the next start only takes longer.
            logger.warning("journal not closed", metadata: ["reason": .string("\(error)")])
        }
        logger.info("stopped", metadata: ["cursor": .string(handler.latest.description)])
    }
}

extension StateServer {
    /// Dispatches `StoreResume`, so that the domain notes that the effects of the process before have ended.
    ///
    /// A restart that changes nothing makes no commit.
    private static func resume<State>(_ store: Store<State>, _ compiled: CompiledDomain<State>, _ logger: Logger) {
        guard compiled.handles(StoreResume.type) else { return }
        var rehearsal = Transaction([.init(StoreResume())])
        rehearsal.purpose = .dryRun
        if case .wouldCommit(isChange: false, _) = store.submitNow(rehearsal),
            !compiled.startsEffects(StoreResume.type)
        {
            return
        }
        do throws(DispatchError) {
            try store.dispatch(StoreResume())
        } catch {
            logger.warning("resume refused", metadata: ["code": .string(error.code), "reason": .string("\(error)")])
        }
    }

    /// The state that the store begins with, and the oldest version that clients can follow from; nil without a journal.
    private static func origin<State>(
        _ compiled: CompiledDomain<State>, _ journal: SQLiteJournal?, _ logger: Logger, _ now: Timestamp
    ) throws -> (Store<State>.Origin, Version?) {
        guard let journal else { return (.init(state: compiled.initial), nil) }
        let recovery = try journal.recover(at: now)
        for warning in recovery.warnings { logger.warning("snapshot skipped", metadata: ["reason": .string(warning)]) }
        let state: State
        do {
            state = try compiled.state(from: recovery.state)
        } catch {
            throw SettingsFault(
                description:
                    "the journal in this data directory does not fit the domain: at \(error.pointer) \(error.detail); was it made by another domain?"
            )
        }
        var version = recovery.version
        // A build that declares more of the state changes what clients read, so the change is a commit.
        if let upgrade = try compiled.upgrade(
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
    /// Logs an action, for the logging middleware.
    fileprivate func log(_ record: LogRecord) {
        var metadata: Logger.Metadata = [
            "action.type": .string(record.actionType), "version": .stringConvertible(record.version),
        ]
        if record.isDryRun { metadata["dry_run"] = "true" }
        if let rejection = record.rejection { metadata["rejection"] = .string(rejection.code) }
        debug(record.rejection == nil ? "action" : "action rejected", metadata: metadata)
    }

    /// Logs an event of the store that belongs to no request.
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

    /// Logs an event of the journal.
    fileprivate func log(_ event: JournalEvent) {
        switch event {
        case .appendFailed(let reason): error("journal failed", metadata: ["reason": .string(reason)])
        case .snapshotNotSaved(let reason): warning("snapshot not saved", metadata: ["reason": .string(reason)])
        case .idsNotIndexed(let reason): warning("ids not indexed", metadata: ["reason": .string(reason)])
        case .upgrading(let commits, let total):
            notice("upgrading the journal", metadata: ["commits": "\(commits)", "of": "\(total)"])
        }
    }
}
