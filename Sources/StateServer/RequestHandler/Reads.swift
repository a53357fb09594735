internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateCluster
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func read(_ request: ReadRequest, _ exchange: Exchange) -> Reply {
        // The latest version goes this way, too: the next commit can make it a past version before it is read.
        if let version = request.version {
            return reading(exchange, .past) { [self] in
                let snapshot = try pastState(version, for: exchange)
                let encoded = try snapshot.encoded(request.selection)
                return contract.response(to: request, Reading(cursor: snapshot.cursor, encoded: encoded))
            }
        }
        let wait = isDraining.load(ordering: .acquiring) ? nil : request.wait
        do {
            if let version = request.atLeast {
                if let wait, !isStale(before: version) {
                    let watch = watch(exchange, .read(request), .version(version))
                    if let reply = try reply(to: hub.watch(watch, until: version), watch, wait) { return reply }
                }
                if latest.version < version { return .now(try notYet(request)) }
            }
            if request.explains {
                return reading(exchange, of: request.selection) { [self] in
                    let snapshot = hub.latest
                    let encoded = try snapshot.encoded(request.selection)
                    return contract.response(to: request, Reading(cursor: snapshot.cursor, encoded: encoded))
                }
            }
            if wait != nil, let reply = evaluate(request, exchange) { return reply }
            let now = try hub.readQuickly(request.selection)
            if let wait, let condition = request.condition {
                let watch = watch(
                    exchange, .read(request), .value(request.selection, until: condition), debounce: request.debounce)
                // A long value is parsed for `until` off the loop: the hub compares it on a queue of its own.
                let seen = now.flatMap { request.until != nil && Self.isLong($0) ? nil : $0 }
                if let reply = try reply(to: hub.watch(watch, seen: seen), watch, wait) { return reply }
            }
            guard let now, !mustWriteSlowly(request, now) else {
                return reading(exchange, of: now == nil ? request.selection : nil) { [self] in
                    contract.response(to: request, try now ?? hub.read(request.selection))
                }
            }
            let response = contract.response(to: request, now)
            let isReusable = request.condition == nil && request.atLeast == nil && now.encoded != nil
            return isReusable ? .reusable(response) : .now(response)
        } catch {
            return .now(respond(to: error, exchange))
        }
    }

    /// The request comes again after the evaluation; nil if the answer is known, or was evaluated a moment ago.
    func evaluate(_ request: ReadRequest, _ exchange: Exchange) -> Reply? {
        guard request.selection.isQuery, !hub.isReadQuickly(request.selection) else { return nil }
        return check(exchange, of: request.selection) { [hub] in _ = try hub.read(request.selection, keeps: true) }
    }

    private func isStale(before version: Version) -> Bool { latest.version < version && staleness != nil }

    private func notYet(_ request: ReadRequest) throws -> Response {
        if journal?.isShared == true { throw Problem.behind(latest) }
        return contract.response(to: Contract.aheadOfLatest(latest), latest: latest, name: request.name)
    }

    func watch(
        _ exchange: Exchange, _ kind: WatchedRequest.Kind, _ subject: Watch.Subject, examinedVersion: Version? = nil,
        debounce: Duration? = nil
    ) -> Watch {
        Watch(
            exchange.id, client: exchange.client, receiver: self, request: WatchedRequest(exchange, kind),
            subject: subject, route: kind.route, examinedVersion: examinedVersion, debounce: debounce)
    }

    func reply(to watching: Watching, _ watch: Watch, _ wait: Wait) throws -> Reply? {
        switch watching {
        case .parked:
            metrics.waitBegan(watch.route)
            return .waiting(atMost: time(of: wait))
        case .refused(let refusal): throw Problem.tooManyWaiters(refusal)
        case .ready: return nil
        }
    }

    /// The answer to a request that has waited, with the latest value; nil where it takes long and may not.
    func response(to request: ReadRequest, mayTakeLong: Bool) throws -> Response? {
        if let version = request.atLeast, latest.version < version { return try notYet(request) }
        if let reading = try hub.readQuickly(request.selection), mayTakeLong || !mustWriteSlowly(request, reading) {
            return contract.response(to: request, reading)
        }
        return mayTakeLong ? contract.response(to: request, try hub.read(request.selection)) : nil
    }

    private func mustWriteSlowly(_ request: ReadRequest, _ reading: Reading) -> Bool {
        guard Self.isLong(reading) else { return false }
        let isKnown = request.until == nil && request.known?.contains(reading.encoded?.tag) == true
        return request.until != nil || contract.mustCompress(request, reading)
            || request.style == .pretty && !isKnown && reading.encoded?.isIndented == false
    }

    static func isLong(_ reading: Reading) -> Bool { reading.encoded?.json.count ?? 0 > quickBytesMax }

    func pastState(_ version: Version, for exchange: Exchange? = nil) throws -> Snapshot {
        guard let kept = try keptState(version, for: exchange) else {
            throw Problem.versionGone(oldest: try journal?.oldestState() ?? hub.oldestState)
        }
        return kept
    }

    /// The result is nil if neither the hub nor the journal has the state, and any state if the exchange is over.
    func keptState(_ version: Version, for exchange: Exchange?) throws -> Snapshot? {
        let latest = hub.latest
        if latest.cursor.version == version { return latest }
        let path = hub.path(to: version)
        guard path != nil || journal != nil else { return nil }
        let cursor = Cursor(latest.cursor.epoch, version)
        let last = lastPast.withLock(\.self)
        if let last, last.cursor == cursor { return last }
        let saved: SavedState
        if let path {
            let versions = path.from.cursor.version...version
            let near = last.flatMap { versions.contains($0.cursor.version) ? $0 : nil } ?? path.from
            var followed = PatchedState(
                try JSONValue(parsing: near.whole(), depthMax: 1000), version: near.cursor.version,
                schedule: near.schedule)
            for commit in path.commits.dropFirst(Int(near.cursor.version - path.from.cursor.version)) {
                if let exchange, exchange.isOver { return path.from }
                _ = try followed.take(commit)
            }
            saved = followed.saved
        } else {
            guard let found = try journal?.state(at: version) else { return nil }
            saved = found
        }
        let snapshot = try store.snapshot(restoring: saved, at: cursor)
        // A state takes up to eight times as much memory as its JSON.
        if saved.state.count <= gauges.memory.bytesMax / 16 {
            _ = lastPast.withLock { Swift.exchange(&$0, with: snapshot) }
        }
        return snapshot
    }

    func changes(_ request: ChangesRequest, _ exchange: Exchange) throws -> Reply {
        let bounds = hub.bounds
        let since: Version
        switch request.since {
        case .now: return .now(try response(to: request, emptyAt: bounds.latest))
        case .oldest: since = bounds.oldest
        case .never: return initialDifference(request, exchange)
        case .cursor(let cursor):
            guard cursor.epoch == bounds.latest.epoch else { return try lost(.lost, request, exchange) }
            try refuseBehind(cursor.version, bounds.latest)
            since = cursor.version
        }
        let query = request.query(since: since)
        var following = Following.nothing(latest: bounds.latest)
        if let wait = request.wait, !isDraining.load(ordering: .acquiring) {
            let watch = watch(
                exchange, .changes(request), .changes(query), examinedVersion: since, debounce: request.debounce)
            prepareStatePages(for: request)
            let watching: Watching
            (following, watching) = hub.watch(watch, query)
            if let reply = try reply(to: watching, watch, wait) { return reply }
            if case .long = following { return try examine(watch, wait, exchange) }
        } else {
            following = hub.following(query)
        }
        switch following {
        case .page(let page) where request.needsState || page.weight > Self.quickBytesMax:
            return reading(exchange) { [self] in try response(to: request, page, since: since) }
        case .page(let page): return .now(try response(to: request, page, since: since))
        case .nothing(let latest): return .now(try response(to: request, emptyAt: latest))
        // The oldest version has moved on since the bounds were read. The client has named no cursor, so try again.
        case .expired where request.since == .oldest: return try changes(request, exchange)
        case .expired: return try lost(.expired, request, exchange)
        case .aboveLatest: return try lost(.lost, request, exchange)
        // After that many commits, the list of all entities is the shorter answer.
        case .inJournal where request.form.isDifference: return initialDifference(request, exchange)
        case .inJournal, .long: return search(request, from: since, exchange, store.page)
        }
    }

    func earlier(_ request: ChangesRequest, before cursor: Cursor?, _ exchange: Exchange) throws -> Reply {
        let bounds = hub.bounds
        if let cursor, cursor.epoch != bounds.latest.epoch || cursor.version > bounds.latest.version {
            if cursor.epoch == bounds.latest.epoch { try refuseBehind(cursor.version, bounds.latest) }
            return .now(try lost(.lost, request))
        }
        return search(request, from: cursor?.version ?? bounds.latest.version + 1, exchange) { [store] query in
            try query.earlier(in: bounds, store.page)
        }
    }

    /// Searches for a second of processor time and ten seconds at most, in turn with other clients' slow reads.
    private func search(
        _ request: ChangesRequest, from start: Version, _ exchange: Exchange,
        _ look: @escaping @Sendable (ChangesQuery) throws -> ChangesPage?
    ) -> Reply {
        let search = Mutex<(found: ChangesPage?, left: Duration)>((nil, .seconds(1)))
        let (end, whole) = (platform.now() + .seconds(10), request.query(since: start))
        return reading(exchange) { [self] in
            let (begun, (found, left)) = (Platform.processorTime(), search.withLock(\.self))
            var query = whole
            if let found {
                query.since = found.next
                (query.limit, query.weightMax) = (whole.limit - found.commits.count, whole.weightMax - found.weight)
            }
            do {
                var page = try look(query)
                page?.commits.insert(contentsOf: found?.commits ?? [], at: 0)
                guard let page, page.isMore, page.commits.count < whole.limit, page.weight < whole.weightMax,
                    case let rest = left - (Platform.processorTime() - begun), rest > .zero, platform.now() < end
                else { return try response(to: request, page ?? found, since: start) }
                search.withLock { $0 = (page, rest) }
                return nil
            } catch {
                // The next page begins at what cannot be read, and reports it.
                guard let found else { throw error }
                return try response(to: request, found, since: start)
            }
        }
    }

    /// Throws where another server may have a version that this one does not have yet; without a shared history it is lost.
    func refuseBehind(_ version: Version, _ latest: Cursor) throws {
        if version > latest.version, journal?.isShared == true { throw Problem.behind(latest) }
    }

    private func examine(_ watch: Watch, _ wait: Wait, _ exchange: Exchange) throws -> Reply {
        if let refusal = slowReads.begin(exchange, isAbandonable: false) { throw Problem.tooManyReads(refusal) }
        if let refusal = hub.register(watch) {
            slowReads.end(exchange)
            throw Problem.tooManyWaiters(refusal)
        }
        platform.slow(.read, exchange.client) { [self] in
            let found = hub.examine(exchange.id)
            // The client may ask again as soon as it has the answer, and this request then counts no more.
            slowReads.end(exchange)
            guard let found, let watched = watch.request as? WatchedRequest, !refuseEndedAccess(of: watched),
                let response = response(to: watched, found, mayTakeLong: true)
            else { return }
            answer(exchange, response)
        }
        metrics.waitBegan(watch.route)
        return .waiting(atMost: time(of: wait))
    }

    func response(to request: ChangesRequest, _ page: ChangesPage?, since version: Version) throws -> Response {
        guard let page else {
            return request.form.isDifference
                ? try contract.initialDifference(to: request, in: hub.latest) : try lost(.expired, request)
        }
        guard let read = request.durable else { return contract.response(to: request, page) }
        var held = page
        let messages = try messages(of: &held, since: version, request)
        return contract.response(to: request, read, held, at: pollTime) { messages }
    }

    func response(to request: ChangesRequest, emptyAt latest: Cursor) throws -> Response {
        try response(to: request, ChangesPage(emptyAt: latest), since: latest.version)
    }

    private func initialDifference(_ request: ChangesRequest, _ exchange: Exchange) -> Reply {
        reading(exchange) { [self] in try contract.initialDifference(to: request, in: hub.latest) }
    }

    private func lost(_ code: ResetReason, _ request: ChangesRequest, _ exchange: Exchange) throws -> Reply {
        if request.form.isDifference { return initialDifference(request, exchange) }
        guard request.onLost == .snapshot else { return .now(try lost(code, request)) }
        return reading(exchange) { [self] in try lost(code, request) }
    }

    private func lost(_ code: ResetReason, _ request: ChangesRequest) throws -> Response {
        if request.durable != nil { throw Problem.offsetGone }
        let (oldest, latest) = (hub.bounds.oldest, hub.latest)
        return contract.response(
            to: request, lost: code, bounds: HistoryBounds(latest: latest.cursor, oldest: oldest)
        ) { try request.store.state(in: latest) }
    }
}

extension UntypedStore {
    /// The result is nil if the commits are no longer kept.
    func page(_ query: ChangesQuery) throws -> ChangesPage? {
        switch hub.examined(query) {
        case .page(let page): page
        case .nothing(let latest), .aboveLatest(let latest): ChangesPage(emptyAt: latest)
        case .inJournal(let latest), .long(let latest): try journal?.page(query, latest: latest)
        case .expired: nil
        }
    }
}

extension ChangesRequest.Form {
    var isDifference: Bool { if case .difference = self { true } else { false } }
}
