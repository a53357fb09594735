internal import Dispatch
internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

/// Streams: a client that waits, is told, and waits again, without asking.
///
/// A stream is in one place at a time: on the board, where a commit finds it; at a reader, which puts something long
/// together; or at the transport, which sends a piece. When the piece is out, the stream looks and parks in one step, as
/// a long-poll does: so nothing is missed, a client that reads slowly is not waited for, and no more than one piece is
/// kept for it.
extension Desk {
    func stream(_ request: StreamRequest, _ exchange: Exchange) -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, request.requestID)) }
        let position = position
        if case .value(let read) = request.source {
            do {
                if let now = try board.readQuickly(read.selection), now.encoded == nil {
                    return .now(contract.response(to: read, now))
                }
            } catch {
                return .now(failedRead(read, error))
            }
        }
        let waiter = Waiter(exchange: exchange, kind: .stream(request))
        if case .refused(let share) = board.enlist(waiter.token, client: exchange.client) {
            return .now(respond(.tooManyWaiters(share), request.requestID))
        }
        let stream = Stream(request, position, endsIn: streamLifetime)
        streams.withLock { $0[exchange] = stream }
        let start = stream.positionAbreast.map { Cursor(position.head.epoch, $0.since) }
        let response = contract.response(
            to: request, head: position.head, start: start, retry: .random(in: 1000...3000))
        // Those who came together do not fall silent together.
        return .streaming(response, heartbeat: heartbeat * Double.random(in: 0.75...1))
    }

    /// What was sent to these streams is out: they go on.
    func written(_ exchanges: [Exchange]) {
        var pieces = Pieces()
        var abreast: [Position: [Exchange]] = [:]
        let present = streams.withLock { streams in
            exchanges.compactMap { exchange in streams.written(exchange).map { (exchange, $0) } }
        }
        for (exchange, stream) in present {
            if let settle = stream.request.settle, stream.next == .follow, !stream.hasMore {
                later(settle) { [self] in
                    var pieces = Pieces()
                    // It may have ended meanwhile.
                    if let stream = streams.withLock({ $0[exchange] }) { advance(exchange, stream, &pieces) }
                    pieces.send()
                }
            } else if let position = stream.positionAbreast, !mustEnd(stream) {
                abreast[position, default: []].append(exchange)
            } else {
                advance(exchange, stream, &pieces)
            }
        }
        for (position, exchanges) in abreast { advance(exchanges, from: position, &pieces) }
        pieces.send()
    }

    private func mustEnd(_ stream: Stream) -> Bool {
        stream.ends <= .now || isDraining.load(ordering: .acquiring)
    }

    /// Streams that stand at one position and want the same go on together: one look for all.
    private func advance(_ exchanges: [Exchange], from position: Position, _ pieces: inout Pieces) {
        guard let query = position.request.query(since: position.since) else { return }
        switch board.follow(query, asEnlisted: exchanges.map(\.token)) {
        case .nothing:
            streams.withLock { streams in
                for exchange in exchanges { streams.update(exchange) { $0.isLive = true } }
            }
        case .page(let page):
            streams.withLock { streams in
                for exchange in exchanges { streams.update(exchange) { $0.hasSent(page) } }
            }
            pieces.add(exchanges, .commits(position, page.next)) { contract.piece(of: position.request, page) }
        case .inJournal, .expired, .aboveHead:
            for exchange in exchanges {
                if let stream = streams.withLock({ $0[exchange] }) { advance(exchange, stream, &pieces) }
            }
        }
    }

    /// These streams have been silent: a sign of life, or the end.
    func quiet(_ exchanges: [Exchange]) {
        var pieces = Pieces()
        for exchange in exchanges {
            // Whoever is not parked has something coming.
            guard let (_, head) = board.leave(exchange.token),
                let stream = streams.withLock({ $0[exchange] })
            else { continue }
            if stream.ends <= .now {
                end(exchange)
                continue
            }
            // All up to the head was looked at while it was parked.
            let moved = head.version > stream.position ? head : nil
            update(exchange) { $0.hasShownItself(at: head.version) }
            pieces.add([exchange], .heartbeat(stream.request.format, moved)) {
                contract.heartbeat(of: stream.request, movedTo: moved)
            }
        }
        pieces.send()
    }

    /// Finishes a stream that nobody has ended yet.
    func end(_ exchange: Exchange) {
        guard endStream(exchange) else { return }
        Exchange.send([], to: [exchange], isLast: true)
    }

    /// Forgets a stream; false if it is none.
    func endStream(_ exchange: Exchange) -> Bool {
        guard streams.withLock({ $0.removeValue(forKey: exchange) }) != nil else { return false }
        board.dismiss(exchange.token)
        return true
    }

    // MARK: From a commit

    /// Tells streams of a selection what its value is now.
    func goOn(_ exchanges: [Exchange], _ request: StreamRequest, _ reading: Reading) {
        let piece = contract.piece(of: request, reading, isFirst: false)
        streams.withLock { streams in
            for exchange in exchanges { streams.update(exchange) { $0.hasSent(reading) } }
        }
        Exchange.send(piece, to: exchanges)
    }

    /// Tells streams of commits what has come.
    func goOn(_ exchanges: [Exchange], _ request: StreamRequest, _ page: ChangesPage) {
        let piece = contract.piece(of: request, page)
        streams.withLock { streams in
            for exchange in exchanges { streams.update(exchange) { $0.hasSent(page) } }
        }
        Exchange.send(piece, to: exchanges)
    }

    // MARK: From the last piece

    private func advance(_ exchange: Exchange, _ stream: Stream, _ pieces: inout Pieces) {
        guard !mustEnd(stream) else { return end(exchange) }
        do {
            switch (stream.next, stream.request.source) {
            case (.reset(let reason), _): try reset(exchange, stream, reason, &pieces)
            case (.begin, .value(let read)): try begin(exchange, stream, read.selection, &pieces)
            case (.follow, .value(let read)): try watch(exchange, stream, read, &pieces)
            case (.begin, .changes(let follow)), (.follow, .changes(let follow)):
                try self.follow(exchange, stream, follow, &pieces)
            }
        } catch {
            fail(exchange, error)
        }
    }

    private func begin(
        _ exchange: Exchange, _ stream: Stream, _ selection: Selection, _ pieces: inout Pieces
    ) throws {
        guard let reading = try board.readQuickly(selection) else {
            return reading(exchange) { [self] in
                let reading = try board.read(selection)
                update(exchange) { $0.hasSent(reading) }
                return contract.piece(of: stream.request, reading, isFirst: true)
            }
        }
        update(exchange) { $0.hasSent(reading) }
        pieces.add([exchange], .value(selection, reading.cursor, isFirst: true)) {
            contract.piece(of: stream.request, reading, isFirst: true)
        }
    }

    private func reset(
        _ exchange: Exchange, _ stream: Stream, _ reason: ResetReason, _ pieces: inout Pieces
    ) throws {
        let selection =
            switch stream.request.source {
            case .value(let read): read.selection
            case .changes(let follow): Selection.pointer(follow.scope.place)
            }
        guard let reading = try board.readQuickly(selection) else {
            return reading(exchange) { [self] in
                let reading = try board.read(selection)
                update(exchange) { $0.hasSent(reading) }
                return contract.piece(of: stream.request, reset: reason, reading)
            }
        }
        update(exchange) { $0.hasSent(reading) }
        pieces.add([exchange], .reset(selection, reading.cursor, reason, stream.request.format)) {
            contract.piece(of: stream.request, reset: reason, reading)
        }
    }

    /// Waits for another value.
    private func watch(
        _ exchange: Exchange, _ stream: Stream, _ read: ReadRequest, _ pieces: inout Pieces
    ) throws {
        let selection = read.selection
        let waiter = Waiter(exchange: exchange, kind: .stream(stream.request))
        guard try board.readQuickly(selection) != nil else {
            return reading(exchange) { [self] in
                switch try board.park(waiter.token, client: exchange.client, at: selection, until: stream.condition) {
                case .parked, .refused:
                    return nil
                case .ready:
                    let reading = try board.read(selection)
                    update(exchange) { $0.hasSent(reading) }
                    return contract.piece(of: stream.request, reading, isFirst: false)
                }
            }
        }
        switch try board.park(waiter.token, client: exchange.client, at: selection, until: stream.condition) {
        case .parked, .refused: dismissIfOver(exchange)
        case .ready:
            let reading = try board.read(selection)
            update(exchange) { $0.hasSent(reading) }
            pieces.add([exchange], .value(selection, reading.cursor, isFirst: false)) {
                contract.piece(of: stream.request, reading, isFirst: false)
            }
        }
    }

    /// Sends the next commits, or waits for them.
    private func follow(
        _ exchange: Exchange, _ stream: Stream, _ follow: FollowRequest, _ pieces: inout Pieces
    ) throws {
        guard let query = stream.request.query(since: stream.position) else { return }
        let waiter = Waiter(exchange: exchange, kind: .stream(stream.request))
        switch board.follow(query, as: waiter.token, client: exchange.client) {
        case .page(let page):
            // One that is only catching up is given the time that it needs.
            if page.isMore, stream.isSlow { return try reset(exchange, stream, .slow, &pieces) }
            update(exchange) { $0.hasSent(page) }
            pieces.add([exchange], .commits(Position(request: stream.request, since: query.since), page.next)) {
                contract.piece(of: stream.request, page)
            }
        case .nothing:
            update(exchange) { $0.isLive = true }
            dismissIfOver(exchange)
        case .inJournal where stream.isSlow: try reset(exchange, stream, .slow, &pieces)
        case .inJournal(let head):
            reading(exchange) { [self] in
                guard let page = try journal?.page(query, head: head) else {
                    update(exchange) { $0.next = .reset(.expired) }
                    return contract.heartbeat(of: stream.request, movedTo: nil)
                }
                update(exchange) { $0.hasSent(page) }
                return contract.piece(of: stream.request, page)
            }
        case .expired: try reset(exchange, stream, stream.isSlow ? .slow : .expired, &pieces)
        case .aboveHead: try reset(exchange, stream, .lost, &pieces)
        }
    }

    /// Puts a piece together off the loop; nil means that the stream has been parked.
    private func reading(_ exchange: Exchange, _ make: @escaping @Sendable () throws -> [UInt8]?) {
        readers[Int(exchange.id % UInt64(readers.count))].async { [self] in
            do {
                if let piece = try make() {
                    Exchange.send(piece, to: [exchange])
                } else {
                    dismissIfOver(exchange)
                }
            } catch {
                fail(exchange, error)
            }
        }
    }

    /// Takes out a stream that has ended before it was parked: nobody else does.
    private func dismissIfOver(_ exchange: Exchange) {
        if streams.withLock({ $0[exchange] }) == nil { board.dismiss(exchange.token) }
    }

    private func fail(_ exchange: Exchange, _ error: any Error) {
        logger.error("stream failed", metadata: ["reason": .string("\(error)")])
        end(exchange)
    }

    private func update(_ exchange: Exchange, _ change: (inout Stream) -> Void) {
        streams.withLock { $0.update(exchange, change) }
    }
}
