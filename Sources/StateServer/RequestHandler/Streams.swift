internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The server keeps at most one chunk of a stream for a client; when that is taken, the hub looks for the next.
extension RequestHandler {
    func stream(_ request: StreamRequest, _ exchange: Exchange) throws -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { throw Problem.draining }
        if case .value(let read) = request.source {
            if let reply = evaluate(read, exchange) { return reply }
            _ = try hub.readQuickly(read.selection)
        }
        let bounds = hub.bounds
        let watch = try watch(request, exchange, bounds)
        if case .changes(let follow) = request.source {
            if let reply = try checkStart(of: follow, bounds, exchange) { return reply }
            prepareStatePages(for: follow)
        }
        if let refusal = hub.register(watch) { throw Problem.tooManyWaiters(refusal) }
        metrics.streamBegan(watch.route)
        // A value or a reset that comes first has a cursor of its own.
        let start = watch.chunk == .first ? watch.examinedVersion.map { Cursor(bounds.latest.epoch, $0) } : nil
        let response =
            if let read = request.durable {
                contract.response(to: request, read, latest: bounds.latest, start: start, at: streamTime)
            } else {
                contract.response(
                    to: request, latest: bounds.latest, start: start, retry: Int(platform.random(1000...3000)))
            }
        // A random part keeps the heartbeats of streams that begin together apart.
        return .streaming(response, heartbeat: heartbeat * platform.random(0.75...1))
    }

    private func watch(_ request: StreamRequest, _ exchange: Exchange, _ bounds: HistoryBounds) throws -> Watch {
        var first: Watch.Chunk = request.durable?.position == nil ? .first : .snapshot(isLast: false)
        let isOfEpoch = request.lastEpoch.map { $0 == bounds.latest.epoch } ?? true
        if request.isLost || !isOfEpoch { first = .reset(.lost) }
        let subject: Watch.Subject
        var examined: Version?
        switch request.source {
        case .value(let read):
            subject = .value(read.selection, until: .otherThan(.tags([])))
            if let seen = read.atLeast, seen > bounds.latest.version {
                if isOfEpoch { try refuseBehind(seen, bounds.latest) }
                first = .reset(.lost)
            }
        case .changes(let changes):
            subject = .changes(changes.streamQuery(since: 0))
            examined = bounds.latest.version
            switch changes.since {
            case .cursor(let cursor) where cursor.epoch == bounds.latest.epoch:
                try refuseBehind(cursor.version, bounds.latest)
                examined = cursor.version
            case .cursor: first = .reset(.lost)
            case .oldest: examined = bounds.oldest
            case .now, .never: break
            }
        }
        let watch = watch(
            exchange, .stream(request), subject, examinedVersion: examined, debounce: request.debounce)
        // Each stream ends at a random time, so clients meet the end of a stream not only at a restart.
        return watch.ofStream(
            first: first, tellsProgress: request.durable != nil,
            endsAt: platform.now() + lifetime(of: request) * platform.random(0.75...1))
    }

    func send(_ chunk: Watch.Chunk, _ change: Delivery.Change, to group: [WatchedRequest]) {
        guard case .stream(let request)? = group.first?.kind else { return }
        let streams = group.map(\.exchange)
        switch (change, request.source) {
        case (.value(let reading), _) where Self.isLong(reading):
            if let known = event(chunk, reading) { return Exchange.send(known, to: streams) }
            let shared = Shared<StreamChunk>()
            slowly(group) { [self] group in
                Exchange.send(shared.made { long(chunk, reading) }, to: group.map(\.exchange))
            }
        case (.value(let reading), _):
            Exchange.send(head(chunk, reading) + contract.eventData(of: reading.encoded), to: streams)
        case (.changes(let page, let since), .changes(let follow)):
            send(page, since: since, request, follow, to: group)
        case (.changes, .value), (.latest, _), (.notInMemory, _), (.outcome, _): Exchange.send([], to: streams)
        }
    }

    private func send(
        _ page: ChangesPage, since: Version, _ request: StreamRequest, _ follow: ChangesRequest,
        to group: [WatchedRequest]
    ) {
        let shared = Shared<CommitsChunk>()
        let send = { @Sendable [self] (group: [WatchedRequest]) in
            do {
                let made = try shared.made { try chunk(with: page, since: since, request, follow) }
                if made.next != page.next { hub.returns(group.map(\.exchange.id), to: made.next) }
                Exchange.send(made.bytes, to: group.map(\.exchange))
            } catch {
                fail(group, error)
            }
        }
        if isLong(page, since: since, for: follow) { slowly(group, send) } else { send(group) }
    }

    /// A long chunk; the data of a value's event is kept, and all streams of the value share it.
    private func long(_ chunk: Watch.Chunk, _ reading: Reading) -> StreamChunk {
        if let known = event(chunk, reading) { return known }
        let data = StreamChunk(contract.eventData(of: reading.encoded))
        reading.encoded?.keep(data)
        return StreamChunk(head(chunk, reading), before: data)
    }

    private func event(_ chunk: Watch.Chunk, _ reading: Reading) -> StreamChunk? {
        guard let data: StreamChunk = reading.encoded?.kept() else { return nil }
        return StreamChunk(head(chunk, reading), before: data)
    }

    private func head(_ chunk: Watch.Chunk, _ reading: Reading) -> [UInt8] {
        let reason: ResetReason? = if case .reset(let reason) = chunk { reason } else { nil }
        return contract.head(of: reading, isFirst: chunk == .first, reset: reason)
    }

    private typealias CommitsChunk = (bytes: StreamChunk, next: Version, isMore: Bool)

    private func chunk(
        with page: ChangesPage, since version: Version, _ request: StreamRequest, _ follow: ChangesRequest
    ) throws -> CommitsChunk {
        var page = page
        let bytes: [UInt8]
        if let read = follow.durable {
            let messages = try messages(of: &page, since: version, follow)
            bytes = contract.chunk(of: read, page, messages: messages, at: streamTime)
        } else {
            bytes = contract.chunk(of: request, page)
        }
        return (StreamChunk(bytes), page.next, page.isMore)
    }

    func sendHeartbeat(_ version: Version?, to group: [WatchedRequest]) {
        guard case .stream(let request)? = group.first?.kind else { return }
        let cursor = version.map { Cursor(latest.epoch, $0) }
        if let read = request.durable, let cursor {
            return Exchange.send(contract.progress(read, cursor, at: streamTime), to: group.map(\.exchange))
        }
        Exchange.send(contract.heartbeat(of: request, movedTo: cursor), to: group.map(\.exchange))
    }

    func end(_ streams: [WatchedRequest]) { Exchange.send([], to: streams.map(\.exchange), isLast: true) }

    /// Ends streams whose clients cannot go on from where they are: they learn the reason when they come back.
    private func fail(_ streams: [WatchedRequest], _ error: any Error) {
        logger.log(
            level: error is Problem ? .debug : .error, "stream failed", metadata: ["reason": .string("\(error)")])
        end(streams.filter { hub.end($0.exchange.id) != nil })
    }

    func prepare(_ group: [WatchedRequest], _ chunk: Watch.Chunk, after version: Version) {
        guard case .stream(let request)? = group.first?.kind, case .changes(let follow) = request.source else { return }
        let shared = Shared<CommitsChunk?>()
        slowly(group) { [self] group in
            // Losing the error is right: what fails here fails for each stream by itself, which then ends with the reason.
            let made = try? shared.made {
                try store.page(follow.streamQuery(since: version)).map {
                    try self.chunk(with: $0, since: version, request, follow)
                }
            }
            guard let made else {
                for watched in group { prepare(watched, chunk) }
                return
            }
            var sent: [Exchange] = []
            for watched in group {
                let id = watched.exchange.id
                if made.isMore, hub.isSlow(id) {
                    prepare(watched, .reset(.slow))
                } else if hub.prepared(id, chunk, made.next, hasMore: made.isMore) {
                    sent.append(watched.exchange)
                }
            }
            Exchange.send(made.bytes, to: sent)
        }
    }

    func prepare(_ watched: WatchedRequest, _ chunk: Watch.Chunk) {
        guard case .stream(let request) = watched.kind, case .changes(let follow) = request.source else { return }
        slowly([watched]) { [self] _ in
            do {
                try send(chunk, of: request, follow, to: watched)
            } catch {
                fail([watched], error)
            }
        }
    }

    private func send(
        _ chunk: Watch.Chunk, of request: StreamRequest, _ follow: ChangesRequest, to watched: WatchedRequest
    ) throws {
        let id = watched.exchange.id
        var reason = ResetReason.expired
        if case .reset(let known) = chunk {
            reason = known
        } else if let examined = hub.examinedVersion(of: id) {
            if case .snapshot = chunk, let read = follow.durable {
                return try send(read, of: follow.store, behind: examined, to: watched)
            }
            do {
                if let page = try store.page(follow.streamQuery(since: examined)) {
                    let made = try self.chunk(with: page, since: examined, request, follow)
                    guard hub.prepared(id, chunk, made.next, hasMore: made.isMore) else { return }
                    return Exchange.send(made.bytes, to: [watched.exchange])
                }
            } catch let error as JournalError where error.kind == .damage && follow.durable == nil {
                logger.error("reading failed", metadata: ["reason": .string("\(error)")])
                reason = .damaged
            }
        }
        guard follow.durable == nil else { throw Problem.offsetGone }
        let snapshot = hub.latest
        let state = try follow.store.state(in: snapshot)
        let reading = Reading(cursor: snapshot.cursor, encoded: Encoded(state))
        guard hub.prepared(id, .reset(reason), reading.cursor.version, hasMore: false) else { return }
        Exchange.send(contract.chunk(of: request, reset: reason, reading), to: [watched.exchange])
    }
}

extension ChangesRequest {
    /// The query of a stream: at most 256 KiB of commits, the bound of what the server keeps for a client.
    func streamQuery(since version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, weightMax: 256 << 10, filter: filter)
    }
}

/// Threads that ask at the same time make the value each.
final class Shared<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)

    func made(by make: () throws -> Value) rethrows -> Value {
        if let known = value.withLock({ $0 }) { return known }
        let made = try make()
        value.withLock { $0 = made }
        return made
    }
}
