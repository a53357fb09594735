internal import CoreMetrics
internal import Dispatch
internal import Glibc
public import Logging
internal import MicroHTTP
public import ServiceLifecycle
internal import StateCluster
internal import StateHTTP
internal import StateJSON
public import StateStore
internal import Synchronization

/// A store behind HTTP: it builds and connects the parts, runs them and stops them.
///
/// ```swift
/// let server = try StateServer(MyDomain(), settings: Settings(), logger: logger)
/// try await server.run()
/// ```
public struct StateServer: Service, Sendable {
    /// The address that a running server listens on: that of `listen`, or of `listen_also` where `listen` is a Unix socket.
    public struct Address: Sendable {
        /// The IP address, as text; empty where the server listens on Unix sockets only.
        public var host: String
        /// The TCP port; 0 where the server listens on Unix sockets only.
        public var port: UInt16
    }

    /// The policy of a start for a journal that is damaged, or shorter than it was.
    public enum DamagePolicy: Sendable {
        /// It throws an error with a sentence, and changes nothing.
        case refuse
        /// It goes on from the last good version under a new epoch, keeps the damaged files beside the new journal, and logs
        /// what is lost.
        case acceptLoss
    }

    package static let version = "0.3.0"

    private let handler: RequestHandler
    private let server: HTTPServer
    private let onReady: @Sendable (Address, _ socket: String?, _ isProtected: Bool) throws -> Void
    /// The longest time of a stop before it ends the process; nil in a process with other work.
    private var exitDelay: Duration?
    private var manager: ServiceManager?

    /// Builds a server: compiles the domain, opens the journal and recovers the state.
    ///
    /// The time is proportional to the size of the state and the number of patches after the newest snapshot.
    ///
    /// - Parameters:
    ///   - domain: the state, actions and reducers to serve.
    ///   - settings: the limits, addresses and directories; see ``SettingKeys``.
    ///   - logger: takes the server's log lines.
    ///   - middleware: runs after the server's own validation, in array order.
    ///   - version: the program's own version, for `/metrics`; nil for none.
    ///   - policy: what to do with a damaged journal.
    ///   - onReady: takes the bound address, once the server takes requests.
    /// - Throws: `DeclarationFault`, ``SettingsFault`` or ``ServerFault``; each describes itself in a sentence.
    public init<D: Domain>(
        _ domain: D, settings: Settings, logger: Logger, middleware: [Middleware<D.State>] = [],
        version: String? = nil, onDamage policy: DamagePolicy = .refuse,
        onReady: @escaping @Sendable (Address) throws -> Void = { _ in }
    ) throws {
        try self.init(
            domain, of: nil, settings: settings, logger: logger, middleware: middleware.map(\.step), version: version,
            onDamage: policy, onReady: { address, _, _ in try onReady(address) })
    }

    init<D: Domain>(
        _ domain: D, of claim: DomainClaim?, settings: Settings, logger: Logger, middleware: [MiddlewareStep],
        version: String?, onDamage policy: DamagePolicy,
        onReady: @escaping @Sendable (Address, _ socket: String?, _ isProtected: Bool) throws -> Void
    ) throws {
        self.onReady = onReady
        let compiled = try CompiledDomain(domain)
        if let fault = Contract.fault(in: compiled.catalogue) { throw DeclarationFault(description: fault) }
        var limits = settings.storeLimits
        let now = Timestamp.now()
        try Self.checkInitial(compiled, settings)
        // A start that the key file refuses makes no journal.
        let keyFile = settings.access == .open ? nil : settings.keyFile
        let signed = try keyFile.map {
            try SignedTokens($0, settings.claimRules, compiled.catalogue, date: Timestamp.now, logger: logger)
        }
        let opened = try ServerFault.translating {
            try OpenedJournal(settings, onDamage: policy, at: now, logger) {
                try compiled.bytes(of: compiled.initial)
            }
        }
        let (journal, cluster) = (opened?.journal, opened?.cluster)
        if cluster != nil { limits.commitBytesMax = ClusterJournal.commitBytesMax }
        let quarantine = try opened.map { opened in
            try Quarantine(
                directory: cluster == nil ? settings.data : settings.clusterDirectory.unlessNone,
                QuarantineFile(opened.document(QuarantineEntry.key, name: QuarantineEntry.name)),
                server: cluster == nil ? nil : settings.clusterAddress.unlessNone, logger: logger)
        }
        let (origin, oldest) = try ServerFault.translating { try Self.origin(compiled, opened, claim, logger, now) }
        var chain: [MiddlewareStep] = [.validation] + middleware
        if logger.logLevel <= .debug { chain.insert(.logging { logger.log($0) }, at: 0) }
        let metrics = ServerMetrics(
            types: compiled.catalogue.types, settings: settings, version: version, sharedWith: MetricsSystem.factory)
        let (platform, queues) = Platform.live()
        let hooks = try opened.map { opened in
            try Hooks(
                opened.document(HookEntry.key, name: HookEntry.name),
                progress: opened.place.document(HookProgressFile.key, name: HookProgressFile.name), settings,
                platform: platform, metrics: metrics, logger: logger)
        }
        let gauges = ServerGauges(loops: settings.loops, memoryBytesMax: settings.memoryBytesMax)
        var watchLimits = settings.watchLimits
        watchLimits.memory = ClientMemory(gauges.memory)
        let store = UntypedStore(
            domain: compiled, middleware: chain, limits: limits, origin: origin, now: Timestamp.now, journal: journal,
            watchLimits: watchLimits, journalOldest: oldest, clock: platform.now,
            processorTime: Platform.processorTime, mark: quarantine?.mark, queues: queues,
            observer: metrics.observer { if let hooks, hooks.isAny { hooks.wake() } }, report: { logger.log($0) })
        let places = try settings.listeningPlaces()
        let authenticator = try Authenticator(
            settings, try settings.tokenFile(followedBy: cluster), signed, places: places, compiled.catalogue,
            now: platform.now, date: Timestamp.now, logger: logger)
        handler = RequestHandler(
            authenticator: authenticator, origins: settings.pageOrigins,
            contract: Contract(
                catalogue: compiled.catalogue, limits: settings.contractLimits,
                hosts: try settings.hosts(listening: places), origins: settings.pageOrigins,
                clientTypes: Page.bytes(of: "client.d.ts")), store: store,
            journal: journal, cluster: try cluster.map { try Cluster($0) }, quarantine: quarantine,
            backups: try Backups(settings, platform: platform, memory: gauges.memory, logger: logger),
            forks: settings.forksMax == 0 ? nil : Forks(settings, memory: gauges.memory, platform: platform),
            hooks: hooks, platform: platform, gauges: gauges,
            requestNumbers: .scrambled(by: .random(in: 0 ... .max)), metrics: metrics, logger: logger)
        if origin.cursor.version > 0 { Self.resume(store, compiled, logger) }
        server = HTTPServer(
            configuration: try settings.transport(on: places), handlers: handler.handlers, gauges: gauges)
    }

    private var logger: Logger { handler.logger }
    private var settings: Settings { handler.metrics.settings }

    /// Finds out whether a server could listen on its addresses; no Unix socket is tried, because its file would stay.
    static func checkAddress(in settings: Settings) throws {
        for case .address(let host, let port) in try settings.listeningPlaces() {
            try ServerFault.translating {
                try HTTPServer.checkAddress(host: host, port: port, loops: settings.loops)
            }
        }
    }

    /// The served store, for dispatches and subscriptions in this process; nil for a domain with another type of state.
    ///
    /// Its actions pass the same middleware, are recorded in the same journal, and get versions in one order with those of
    /// clients. A subscriber runs between a commit and its answer, so it must be quick or have a queue of its own.
    ///
    /// ```swift
    /// let store = server.store(of: Counter.State.self)
    /// let token = store?.subscribe(\.value) { print($0) }
    /// try await store?.dispatch(Counter.Add(amount: 2))
    /// ```
    public func store<State: StateType>(of _: State.Type) -> Store<State>? { Store(handler.store) }

    /// Serves until the task is cancelled or the service group shuts down; then drains and closes the journal.
    ///
    /// - Throws: ``ServerFault`` when the address cannot be listened on.
    public func run() async throws {
        await catchUp()
        let bound = try ServerFault.translating { try server.start() }
        // The commits of others while this server began to listen are there, too, before it says that it is ready.
        await catchUp()
        let address = bound.first { $0.path == nil }
        var metadata: Logger.Metadata = [
            "cursor": .string(handler.latest.description), "data": .string(settings.data),
            "libmicrohttpd": .string(LibraryVersion.current.text),
        ]
        for (place, suffix) in zip(bound, ["", "_also"]) {
            if let path = place.path {
                metadata["socket\(suffix)"] = .string(path)
            } else {
                metadata["host\(suffix)"] = .string(place.host)
                metadata["port\(suffix)"] = .stringConvertible(place.port)
            }
        }
        if let reason = handler.journal?.failure { metadata["takes_commits"] = .string("no: \(reason)") }
        logger.info("ready", metadata: metadata)
        if !LibraryVersion.current.isTested {
            let tested = "\(LibraryVersion.tested.first.text) to \(LibraryVersion.tested.last.text)"
            logger.log(
                .warning, "libmicrohttpd untested", ["version": LibraryVersion.current.text, "tested": tested])
        }
        handler.cluster?.start { [store = handler.store] in
            store.lostHistory == nil
        } _: { [handler] in
            handler.hub.endGeneration()
        }
        handler.hooks?.start(at: .init(store: handler.store, contract: handler.contract, cluster: handler.cluster))
        handler.store.beginFiring { [handler] in
            (handler.cluster?.mayDispatchScheduled ?? true) && handler.authenticator.canJudge
                && !handler.isDraining.load(ordering: .relaxed)
        } judge: { [authenticator = handler.authenticator, hooks = handler.hooks] scheduled, action in
            if scheduled.name.isPlace || scheduled.isOfReducer { return nil }
            if hooks?.mayDispatch(scheduled.type, by: scheduled.name.by) ?? false { return nil }
            // The type may be internal only since the client has scheduled it.
            if action.isOfInternalType { return .unknownAction(scheduled.type) }
            return authenticator.rejection(of: action, by: scheduled.name.by, with: scheduled.credential)
        }
        repeatedly(every: .milliseconds(500)) { readFiles() }
        (handler.journal as? ClusterJournal)?.watchDocuments { handler.platform.after(.zero) { readFiles() } }
        if handler.metrics.isShared { repeatedly(every: .seconds(10)) { handler.sampleMetrics() } }
        let reached = Address(host: address?.host ?? "", port: address?.port ?? 0)
        try onReady(reached, bound.lazy.compactMap(\.path).first, handler.authenticator.isProtected)
        notify(.ready)
        // The sleep ends by cancellation, and its error says only that.
        await cancelWhenGracefulShutdown { try? await Task.sleep(for: .seconds(3600 * 24 * 365 * 100)) }
        await stop()
    }

    /// Waits until the store has what was acknowledged anywhere before, so that no answer is older than the start.
    private func catchUp() async {
        guard let journal = handler.journal as? ClusterJournal, let newest = try? journal.newestVersion() else {
            return
        }
        let end = ContinuousClock.now + .seconds(10)
        while handler.latest.version < newest, ContinuousClock.now < end {
            // Only a cancelled start returns early.
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    private func repeatedly(every time: Duration, _ work: @escaping @Sendable () -> Void) {
        guard !handler.isDraining.load(ordering: .relaxed) else { return }
        work()
        handler.platform.after(time) { repeatedly(every: time, work) }
    }

    private func notify(_ notification: ServiceManager.Notification) {
        guard let reason = manager?.send(notification) else { return }
        logger.log(
            .warning, "service manager not notified", ["notification": notification.rawValue, "reason": reason])
    }

    /// Reads the files of tokens, keys and quarantined actions after each change, and ends accesses that have expired.
    private func readFiles() {
        refreshTokens()
        handler.quarantine?.reload()
        handler.hooks?.refresh()
    }

    /// Takes the functions of a changed model; `file` is the kind of the domain's file, such as `model`.
    private func reloadDomain(of file: String) {
        do {
            switch try handler.store.reloadDomain() {
            case .unchanged: break
            case .taken:
                handler.forks?.forgetViews()
                logger.notice("model loaded again")
            case .needsRestart:
                let loss = handler.journal == nil ? "; without data, that loses the state" : ""
                throw SettingsFault(
                    description:
                        "the file fits the state, and declares other slices, actions, schemas, views or another version: restart the server to take it\(loss)"
                )
            }
        } catch {
            logger.error("\(file) not loaded again; the old one goes on", metadata: ["reason": .string("\(error)")])
            Greeting.show("\(error)")
        }
    }

    private func refreshTokens() {
        let haveEnded = handler.authenticator.refresh()
        if haveEnded { endWatches() }
        handler.removeOrphans(tokensHaveChanged: haveEnded)
        if !haveEnded, handler.authenticator.isEndNear { handler.hub.endGeneration() }
    }

    /// Ends also what clients were beginning to wait for as their access ended, by a second look.
    private func endWatches() {
        handler.endWatches()
        handler.platform.after(.milliseconds(300)) { handler.endWatches() }
    }

    package var inProcessTransport: InProcessTransport {
        // Exchange numbers must be unique: each transport gets a range of its own, above those of the sockets.
        let part = Self.transportsCount.add(1, ordering: .relaxed).newValue
        return InProcessTransport(
            handler.handlers, firstNumber: UInt64(part) << 40 | 1 << 63, after: handler.platform.after)
    }

    private static let transportsCount = Atomic(0)

    /// Serves until SIGTERM or SIGINT; then drains and closes the journal.
    ///
    /// SIGHUP makes it read the files of tokens and keys, and of a model, at once. A service manager that has set `NOTIFY_SOCKET`
    /// is notified when the server takes requests, and when it begins to stop.
    ///
    /// A program with further services runs this one in their `ServiceGroup` with ``run()``.
    ///
    /// - Throws: ``ServerFault`` when the address cannot be listened on.
    public func runUntilSignal() async throws { try await runUntilSignal(reloading: "model") }

    /// Serves as ``runUntilSignal()``; the `file` is loaded again whenever it is saved, or by SIGHUP only if it is nil.
    func runUntilSignal(reloading kind: String, watching file: String? = nil) async throws {
        var server = self
        server.manager = ServiceManager()
        server.exitDelay = .seconds(settings.graceSeconds) + .seconds(2)
        let group = ServiceGroup(configuration: .init(services: [server], logger: logger))
        ProcessSignals.receive()
        let (hangUpsToCome, hangUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        try ProcessSignals.handle { number in
            if number == SIGHUP {
                hangUp.yield()
            } else {
                Task { await group.triggerGracefulShutdown() }
            }
        }
        // One after the other, with the values of this task.
        let hangUps = Task { [server] in
            for await _ in hangUpsToCome {
                server.refreshTokens()
                server.reloadDomain(of: kind)
            }
        }
        let saves = Task {
            guard let file else { return }
            var watch = FileWatch(file)
            // The sleep ends by cancellation.
            while (try? await Task.sleep(for: .milliseconds(200))) != nil {
                if watch.hasChanged() { hangUp.yield() }
            }
        }
        defer { for task in [hangUps, saves] { task.cancel() } }
        try await group.run()
    }

    /// Ends the process where a stop lasts too long: every acknowledged commit is in the journal.
    private func limitStop() {
        guard let exitDelay else { return }
        let queue = DispatchQueue(label: "storekeeper.exit", qos: .userInteractive)
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(exitDelay / .nanoseconds(1)))) { [logger] in
            logger.critical("the stop took too long; the process ends")
            StateLogHandler.flush(within: .milliseconds(200))
            _exit(70)
        }
    }

    private func stop() async {
        limitStop()
        notify(.stopping)
        let begun = ContinuousClock.now
        logger.info("stopping", metadata: ["waiters": .stringConvertible(handler.hub.watchesCount)])
        handler.beginDraining()
        handler.hooks?.stop()
        server.stopAccepting()
        await handler.drain(over: .milliseconds(500))
        // The waits have used a part of the grace time.
        let left = .seconds(settings.graceSeconds) - begun.duration(to: .now)
        await server.stop(grace: max(.zero, left))
        handler.cluster?.stop()
        do {
            try handler.journal?.close(handler.hub.latest)
        } catch {
            // Every acknowledged commit is on the disk already; the next start only takes longer.
            logger.warning("journal not closed", metadata: ["reason": .string("\(error)")])
        }
        logger.info("stopped", metadata: ["cursor": .string(handler.latest.description)])
    }
}
