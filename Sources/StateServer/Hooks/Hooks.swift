internal import Dispatch
internal import HTTPClient
internal import HTTPMessages
internal import Logging
internal import StateCluster
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// The hooks of a server: it POSTs to each receiver the commits that its hook sees, in order, one at a time.
///
/// Any thread may call any method. One queue decides, one thread carries the requests out, a second queue writes.
final class Hooks: Sendable {
    struct Site: Sendable {
        let store: UntypedStore
        let contract: Contract
        let cluster: Cluster?
    }

    struct State {
        var site: Site?
        var entries: [HookEntry] = []
        var runs: [String: HookRun] = [:]
        var budget = HookBudget()
        /// The content of the progress file, as far as it is known; nil while this server does not deliver.
        var written: HookProgressFile.Content?
        var mustWrite = false
        var looks = 0
        var unreadable: String?
    }

    let file: HookFile
    private let progressFile: HookProgressFile
    private let watched: WatchedFile<[HookEntry]?>
    let settings: Settings
    let platform: Platform
    let metrics: ServerMetrics
    let logger: Logger
    let state = Mutex(State())
    private let pool = Mutex<HTTPPool?>(nil)
    let queue = DispatchQueue(label: "storekeeper.hooks", qos: .utility)
    private let writing = DispatchQueue(label: "storekeeper.hooks.progress", qos: .utility)
    private let hasHooks = Atomic(false)
    private let isWoken = Atomic(false)
    /// How many nanoseconds the next look at the hooks waits, by the time of the last one.
    private let rest = Atomic(0)
    private let isStopped = Atomic(false)

    init(
        _ file: any SharedDocument, progress: any SharedDocument, _ settings: Settings, platform: Platform,
        metrics: ServerMetrics, logger: Logger
    ) throws(SettingsFault) {
        self.file = HookFile(file)
        progressFile = HookProgressFile(progress)
        watched = WatchedFile(file, decode: self.file.entries)
        (self.settings, self.platform, self.metrics, self.logger) = (settings, platform, metrics, logger)
        take(try self.file.read() ?? [])
    }

    // MARK: The server calls

    func start(at site: Site) {
        state.withLock { $0.site = site }
        queue.async { self.look() }
    }

    var isAny: Bool { hasHooks.load(ordering: .relaxed) }

    func wake() {
        guard !isWoken.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // The commits of some turns are looked at together. The rest bounds the looks of many hooks to a fifth of a processor.
        queue.asyncAfter(deadline: .now() + .nanoseconds(1_000_000 + rest.load(ordering: .relaxed))) { [self] in
            isWoken.store(false, ordering: .releasing)
            let begun = platform.now()
            look()
            rest.store(min(4 * Int((platform.now() - begun) / .nanoseconds(1)), 100_000_000), ordering: .relaxed)
        }
    }

    func refresh() {
        queue.async { [self] in
            switch watched.news() {
            case .content(let entries): take(entries ?? [])
            case .fault(let reason): report(unreadable: reason)
            case .shut, nil: break
            }
            guard hasHooks.load(ordering: .relaxed) else { return }
            look()
            let content = state.withLock { state -> HookProgressFile.Content? in
                state.looks += 1
                // Commits that concern no hook can be passed over again.
                guard state.mustWrite || state.looks.isMultiple(of: 10) else { return nil }
                return state.contentToWrite()
            }
            if let content { writing.async { self.write(content) } }
        }
    }

    func stop() {
        isStopped.store(true, ordering: .releasing)
        pool.withLock { $0 }?.stop()
        queue.sync {}
        // Behind those under way, which may fail.
        writing.sync { if let content = state.withLock({ $0.contentToWrite() }) { write(content) } }
    }

    var reports: [HookReport] {
        state.withLock { state in
            let latest = state.site?.store.hub.latest.cursor
            return state.entries.map { HookReport(entry: $0, progress: state.runs[$0.id]?.progress, latest: latest) }
        }
    }

    func mayDispatch(_ type: String, by subject: String?) -> Bool {
        guard let subject, subject.hasPrefix(HookEntry.subjectPrefix) else { return false }
        let id = String(subject.dropFirst(HookEntry.subjectPrefix.count))
        let (site, entry) = state.withLock { state in (state.site, state.entries.first { $0.id == id }) }
        guard let site, let entry else { return false }
        return site.contract.hookView(entry.grant, subject: subject, path: nil, types: []).mayDispatch(type)
    }

    var unreadableReason: String? { state.withLock { $0.unreadable } }

    // MARK: On the queue

    private func take(_ entries: [HookEntry]) {
        let isFirst = state.withLock { state in
            let isFirst = state.entries.isEmpty
            (state.entries, state.unreadable) = (entries, nil)
            state.update()
            return isFirst
        }
        hasHooks.store(!entries.isEmpty, ordering: .relaxed)
        if !entries.isEmpty || !isFirst { logger.log(.notice, "hooks read", ["hooks": entries.count]) }
        if isFirst, !entries.isEmpty, ClusterAddress.isMeant(by: settings.data), settings.clusterAddress == "none" {
            logger.warning(
                "this server delivers to no hook: without cluster_address it never has the part of the writer")
        }
    }

    private func report(unreadable reason: String) {
        guard state.withLock({ exchange(&$0.unreadable, with: reason) }) != reason else { return }
        logger.log(.error, "hooks not read", ["reason": reason])
    }

    private func look() {
        guard hasHooks.load(ordering: .relaxed), !isStopped.load(ordering: .acquiring),
            let site = state.withLock({ $0.site })
        else { return }
        guard site.cluster?.isWriter ?? true, site.cluster?.staleness == nil else {
            // The server that writes goes on from the file.
            return state.withLock { ($0.runs, $0.written) = ([:], nil) }
        }
        if state.withLock({ $0.written == nil }) {
            do throws(SettingsFault) {
                let read = try progressFile.read()
                state.withLock { state in
                    state.unreadable = nil
                    (state.written, state.budget) = (read, HookBudget(read.roots))
                    state.update()
                }
            } catch { return report(unreadable: error.description) }
        }
        for id in state.withLock({ Array($0.runs.keys) }) { step(id, site) }
    }

    func step(_ id: String, _ site: Site) {
        guard !isStopped.load(ordering: .acquiring), var run = state.withLock({ $0.runs[id] }),
            run.isDue(at: platform.now())
        else { return }
        do {
            let isMore = try read(&run, site)
            if let delivery = run.delivery {
                let pool = try runningPool()
                let number = run.begin()
                // Before the request is sent: the pool asks at once whether the attempt is wanted.
                state.withLock { $0.runs[id] = run }
                send(delivery, of: run.entry, number, in: pool)
            } else {
                state.withLock { $0.runs[id] = run }
                if isMore { queue.async { self.step(id, site) } }
            }
        } catch {
            state.withLock { $0.runs[id] = run }
            fail(id, "\(error)")
        }
    }

    /// The result tells whether there are further commits, of which none yet concerns the hook.
    private func read(_ run: inout HookRun, _ site: Site) throws -> Bool {
        guard run.delivery == nil else { return false }
        let latest = site.store.hub.bounds.latest
        guard let cursor = run.cursor, cursor.epoch == latest.epoch else { return reset(&run, .lost, site) }
        guard cursor.version <= latest.version else {
            // Another server of the history has brought the hook further than this one has come.
            return site.store.journal?.isShared == true ? false : reset(&run, .lost, site)
        }
        let body = { @Sendable [view = run.view] in site.contract.delivery(of: $0, to: view, epoch: latest.epoch) }
        run.advance(in: latest.epoch, body)
        guard let since = run.needsCommits, since < latest.version else { return false }
        let query = ChangesQuery(since: since, limit: 100, weightMax: 256 << 10, filter: run.view.filter)
        guard let page = try site.store.page(query) else { return reset(&run, .expired, site) }
        run.take(page)
        run.advance(in: latest.epoch, body)
        return page.isMore && run.delivery == nil
    }

    private func reset(_ run: inout HookRun, _ reason: ResetReason, _ site: Site) -> Bool {
        let latest = site.store.hub.latest.cursor
        logger.log(
            .warning, "hook has missed commits",
            [
                "hook": run.entry.id, "reason": reason.rawValue, "cursor": run.progress.cursor,
                "goes_on_from": latest.description,
            ])
        metrics.hookReset()
        run.reset(to: latest, site.contract.resetDelivery(reason, at: latest))
        return false
    }

    private func send(_ delivery: HookRun.Delivery, of entry: HookEntry, _ number: Int, in pool: HTTPPool) {
        let seconds = platform.time().milliseconds / 1000
        let signatures = entry.secrets.compactMap { HookSecret($0) }.map {
            $0.signature(of: delivery.body, id: delivery.id, at: seconds)
        }
        let fields = [
            "Content-Type: application/json", "User-Agent: storekeeper/\(StateServer.version)",
            "webhook-id: \(delivery.id)", "webhook-timestamp: \(seconds)",
            "webhook-signature: \(signatures.joined(separator: " "))",
        ]
        let request = HTTPConnection.Request(
            entry.url, method: "POST", fields: fields + (entry.fields ?? []), body: delivery.body,
            within: .seconds(settings.hookSecondsMax), bodyBytesMax: settings.hookAnswerBytesMax)
        pool.send(request) { [self] in
            !isStopped.load(ordering: .relaxed) && state.withLock { $0.runs[entry.id]?.attempt == number }
        } then: { [self] outcome in
            queue.async { self.end(entry.id, number, outcome) }
        }
    }

    /// The pool, which the first delivery makes: a server without hooks needs no libcurl.
    private func runningPool() throws -> HTTPPool {
        if let made = pool.withLock({ $0 }) { return made }
        let made = try HTTPPool(requestsMax: settings.hookDeliveriesMax)
        pool.withLock { $0 = made }
        DispatchQueue(label: "storekeeper.hooks.deliveries").async { made.run() }
        return made
    }

    private func write(_ content: HookProgressFile.Content) {
        do throws(SettingsFault) {
            try progressFile.write(content, isShared: ClusterAddress.isMeant(by: settings.data))
            state.withLock { if $0.written != nil { $0.written = content } }
        } catch {
            // It is written again some looks later; what is not written is delivered again by the next start.
            logger.log(.error, "progress of hooks not written", ["reason": error.description])
        }
    }
}

extension Hooks.State {
    fileprivate mutating func update() {
        guard let written, let site else { return }
        let (before, bounds) = (runs, site.store.hub.bounds)
        runs = [:]
        for entry in entries {
            let view = site.contract.hookView(
                entry.grant, subject: entry.subject, path: entry.pointer, types: entry.types)
            let begin = entry.since ?? Cursor(bounds.latest.epoch, bounds.oldest).description
            let known = written.hooks.first { $0.id == entry.id } ?? HookProgress(id: entry.id, cursor: begin)
            var run = before[entry.id] ?? HookRun(entry, view, known)
            if run.entry != entry { run.replace(by: entry, view) }
            if run.resume(keptAfter: bounds.oldest, through: bounds.latest.version) { mustWrite = true }
            runs[entry.id] = run
        }
    }

    fileprivate mutating func contentToWrite() -> HookProgressFile.Content? {
        guard let written else { return nil }
        mustWrite = false
        let content = HookProgressFile.Content(
            hooks: entries.compactMap { runs[$0.id]?.progress }, roots: budget.lasting)
        return content == written ? nil : content
    }
}
