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
    func stream(_ request: StreamRequest, _ exchange: Exchange) -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, request.requestID)) }
        if case .value(let read) = request.source {
            if let reply = evaluate(read, exchange) { return reply }
            do {
                _ = try hub.readQuickly(read.selection)
            } catch {
                return .now(failedRead(read, error))
            }
        }
        let bounds = hub.bounds
        if let seen = request.seenVersion(of: bounds.latest.epoch), isBehind(seen, bounds.latest) {
            return .now(respond(.behind(bounds.latest), request.requestID))
        }
        if let refusal = refusal(of: request, bounds) { return .now(respond(refusal, request.requestID)) }
        if case .changes(let follow) = request.source {
            if follow.durable != nil, let reply = check(request, follow, bounds, exchange) { return reply }
            prepareStatePages(for: follow)
        }
        let watch = watch(request, exchange, bounds)
        if let refusal = hub.register(watch) {
            return .now(respond(.tooManyWaiters(refusal), request.requestID))
        }
        metrics.streamBegan(watch.route)
        // A value or a reset that comes first has a cursor of its own.
        let start = watch.chunk == .first ? watch.examinedVersion.map { Cursor(bounds.latest.epoch, $0) } : nil
        let response =
            if let read = request.durable {
                contract.response(to: request, read, latest: bounds.latest, start: start, at: streamTime)
            } else {
                contract.response(
                    to: request, latest: bounds.latest, start: start, retry: Int(schedule.random(1000...3000)))
            }
        // A random part keeps the heartbeats of streams that begin together apart.
        return .streaming(response, heartbeat: heartbeat * schedule.random(0.75...1))
    }

    private func watch(_ request: StreamRequest, _ exchange: Exchange, _ bounds: HistoryBounds) -> Watch {
        var first: Watch.Chunk = request.snapshot == nil ? .first : .snapshot(isLast: false)
        if request.isLost || request.lastEpoch.map({ $0 != bounds.latest.epoch }) ?? false { first = .reset(.lost) }
        let subject: Watch.Subject
        var examined: Version?
        switch request.source {
        case .value(let read):
            subject = .value(read.selection, until: .otherThan(.tags([])))
            if let seen = read.atLeast, seen > bounds.latest.version { first = .reset(.lost) }
        case .changes(let changes):
            let query = changes.streamQuery(since: 0)
            subject = .changes(query.filter, limit: query.limit, weightMax: query.weightMax)
            examined = bounds.latest.version
            switch changes.since {
            case .cursor(let cursor):
                if cursor.epoch == bounds.latest.epoch { examined = cursor.version } else { first = .reset(.lost) }
            case .oldest: examined = bounds.oldest
            case .now, .never: break
            }
        }
        let watched = WatchedRequest(exchange, .stream(request))
        return Watch(
            stream: exchange.id, client: exchange.client, receiver: self, request: watched, subject: subject,
            route: watched.kind.route, examinedVersion: examined, first: first,
            tellsProgress: request.durable != nil,
            // Each stream ends at a random time, so clients meet the end of a stream not only at a restart.
            debounce: request.debounce, endsAt: schedule.now() + lifetime(of: request) * schedule.random(0.75...1))
    }

    func send(_ chunk: Watch.Chunk, _ change: Delivery.Change, to group: [WatchedRequest]) {
        guard case .stream(let request)? = group.first?.kind else { return }
        if case .changes(let follow) = request.source, let read = follow.durable {
            if case .changes(let page, let since) = change { send(page, since: since, follow, read, to: group) }
            return
        }
        let streams = group.map(\.exchange)
        guard isLong(change) else {
            return Exchange.send(StreamChunk(bytes(chunk, change, of: request)), to: streams)
        }
        if let known = event(chunk, change, of: request) { return Exchange.send(known, to: streams) }
        let shared = Shared<StreamChunk>()
        // The loop thread does not make what is long.
        slowly(group) { [self] group in
            Exchange.send(shared.made { long(chunk, change, of: request) }, to: group.map(\.exchange))
        }
    }

    private func isLong(_ change: Delivery.Change) -> Bool {
        switch change {
        case .value(let reading): Self.isLong(reading)
        case .changes(let page, _): page.weight > Self.quickBytesMax
        case .latest, .notInMemory, .outcome: false
        }
    }

    /// A long chunk; the data of a value's event is kept, and all streams of the value share it.
    private func long(_ chunk: Watch.Chunk, _ change: Delivery.Change, of request: StreamRequest) -> StreamChunk {
        if request.format == .events, case .value(let reading) = change, let encoded = reading.encoded,
            event(chunk, change, of: request) == nil
        {
            encoded.keep(StreamChunk(contract.eventData(of: encoded)))
        }
        return event(chunk, change, of: request) ?? StreamChunk(bytes(chunk, change, of: request))
    }

    private func event(_ chunk: Watch.Chunk, _ change: Delivery.Change, of request: StreamRequest) -> StreamChunk? {
        guard request.format == .events, case .value(let reading) = change,
            let data: StreamChunk = reading.encoded?.kept()
        else { return nil }
        let reason: ResetReason? = if case .reset(let reason) = chunk { reason } else { nil }
        return StreamChunk(contract.head(of: reading, isFirst: chunk == .first, reset: reason), before: data)
    }

    private func bytes(_ chunk: Watch.Chunk, _ change: Delivery.Change, of request: StreamRequest) -> [UInt8] {
        switch (chunk, change) {
        case (.reset(let reason), .value(let reading)): contract.chunk(of: request, reset: reason, reading)
        case (_, .value(let reading)): contract.chunk(of: request, reading, isFirst: chunk == .first)
        case (_, .changes(let page, _)): contract.chunk(of: request, page)
        case (_, .latest), (_, .notInMemory), (_, .outcome): []
        }
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

    /// Examines the commits after a version for streams with equal options, once for all of them, on a read queue.
    func prepare(_ group: [WatchedRequest], _ chunk: Watch.Chunk, after version: Version) {
        guard case .stream(let request)? = group.first?.kind, case .changes(let follow) = request.source else { return }
        let shared = Shared<(next: Version, isMore: Bool, chunk: StreamChunk)?>()
        slowly(group) { [self] group in
            // Losing the error is right: what fails here fails for each stream by itself, which then ends with the reason.
            let made = try? shared.made { () throws -> (next: Version, isMore: Bool, chunk: StreamChunk)? in
                guard var page = try page(follow.streamQuery(since: version)) else { return nil }
                let bytes = try bytes(of: &page, since: version, request, follow)
                return (page.next, page.isMore, StreamChunk(bytes))
            }
            guard let made else {
                for watched in group { prepare(watched, chunk) }
                return
            }
            var sent: [Exchange] = []
            for watched in group {
                let id = watched.exchange.id
                // A client that reads too slowly begins again from the state.
                if made.isMore, hub.isSlow(id) {
                    prepare(watched, .reset(.slow))
                } else if hub.prepared(id, chunk, made.next, hasMore: made.isMore) {
                    sent.append(watched.exchange)
                }
            }
            Exchange.send(made.chunk, to: sent)
        }
    }

    /// The chunk with the commits of a page, which becomes what the chunk holds of it.
    private func bytes(
        of page: inout ChangesPage, since version: Version, _ request: StreamRequest, _ follow: ChangesRequest
    ) throws -> [UInt8] {
        guard let read = follow.durable else { return contract.chunk(of: request, page) }
        let messages = try messages(of: &page, since: version, follow)
        return contract.chunk(of: read, page, messages: messages, at: streamTime)
    }

    func prepare(_ watched: WatchedRequest, _ chunk: Watch.Chunk) {
        guard case .stream(let request) = watched.kind, case .changes(let changes) = request.source else { return }
        schedule.slow(.read, watched.exchange.client) { [self] in
            do {
                if let read = changes.durable {
                    try send(chunk, of: request, changes, read, to: watched)
                } else {
                    try send(chunk, of: request, changes, to: watched.exchange)
                }
            } catch {
                logger.error("stream failed", metadata: ["reason": .string("\(error)")])
                if hub.end(watched.exchange.id) != nil { end([watched]) }
            }
        }
    }

    private func send(
        _ chunk: Watch.Chunk, of request: StreamRequest, _ changes: ChangesRequest, to exchange: Exchange
    ) throws {
        let id = exchange.id
        var reason = ResetReason.expired
        guard !exchange.isOver else { return }
        if case .reset(let known) = chunk {
            reason = known
        } else if let examined = hub.examinedVersion(of: id) {
            do {
                if let page = try page(changes.streamQuery(since: examined)) {
                    guard hub.prepared(id, chunk, page.next, hasMore: page.isMore) else { return }
                    return Exchange.send(contract.chunk(of: request, page), to: [exchange])
                }
            } catch let error as JournalError where error.kind == .damage {
                // The client goes on from the latest state, and knows that it has missed commits.
                logger.error("reading failed", metadata: ["reason": .string("\(error)")])
                reason = .damaged
            }
        }
        let snapshot = hub.latest
        let state = try changes.store.state(in: snapshot)
        let reading = Reading(cursor: snapshot.cursor, encoded: Encoded(state))
        guard hub.prepared(id, .reset(reason), reading.cursor.version, hasMore: false) else { return }
        Exchange.send(contract.chunk(of: request, reset: reason, reading), to: [exchange])
    }
}

extension ChangesRequest {
    /// The query of a stream: at most 256 KiB of commits, the bound of what the server keeps for a client.
    func streamQuery(since version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, weightMax: 256 << 10, filter: filter)
    }
}

/// A value that is made once for several pieces of slow work, or by each of them that runs at the same time.
final class Shared<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)

    func made(by make: () throws -> Value) rethrows -> Value {
        if let known = value.withLock({ $0 }) { return known }
        let made = try make()
        value.withLock { $0 = made }
        return made
    }
}

extension StreamRequest {
    fileprivate func seenVersion(of epoch: Epoch) -> Version? {
        switch source {
        case .value(let read): return lastEpoch == nil || lastEpoch == epoch ? read.atLeast : nil
        case .changes(let changes):
            guard case .cursor(let cursor) = changes.since, cursor.epoch == epoch else { return nil }
            return cursor.version
        }
    }
}
