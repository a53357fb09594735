package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

extension Contract {
    func streams(_ routed: RoutedRequest, _ path: [String]) throws(Problem) -> Plan {
        switch path {
        case []: return try fixed(routed) { streams(of: routed.store) }
        case ["commits"], ["state"]: break
        case _: throw Problem(.notFound, "no-such-stream", "there is no such stream; there are commits and state")
        }
        switch routed.request.method {
        case .get, .head: break
        case .options: return .respond(try Self.refuseMethod(routed.request, allowed: "GET, HEAD, OPTIONS"))
        case let method:
            throw Problem(
                .methodNotAllowed, "method-not-allowed",
                "\(method.rawValue) cannot be used here: a stream can only be read; POST \(routed.store.path)/actions takes actions",
                fields: [.allow: "GET, HEAD, OPTIONS"])
        }
        return try path == ["state"] ? stateStream(routed) : commitStream(routed)
    }

    private func commitStream(_ routed: RoutedRequest) throws(Problem) -> Plan {
        let parameters = try Parameters(
            routed.target, known: ["offset", "live", "cursor", "path", "types", "by", "as"], others: .ignored)
        let filter = try filter(parameters, routed.store)
        let form: ChangesRequest.Form = try isKeyed(parameters) ? .keyed : .patches
        let live = try Live(parameters)
        let read = try durable(.commits, parameters, routed)
        guard routed.request.method == .get else { return .respond(metadata(read, routed)) }
        let since: ChangesRequest.Since
        switch read.start {
        case "-1": since = .oldest
        case "now": since = live == nil ? .now : .cursor(routed.circumstances.latest)
        case let text: since = .cursor(try offset(text, ofState: false).cursor)
        }
        return try follow(since, filter, form, read, live, routed)
    }

    private func stateStream(_ routed: RoutedRequest) throws(Problem) -> Plan {
        let parameters = try Parameters(
            routed.target, known: ["offset", "live", "cursor", "old-values"], others: .ignored)
        let live = try Live(parameters)
        let content = DurableRead.Content.state(hasOldValues: try parameters.flag("old-values"))
        let read = try durable(content, parameters, routed)
        guard routed.request.method == .get else { return .respond(metadata(read, routed)) }
        var snapshot = EntitiesRequest(
            position: 0, isLive: live == .longPoll, read: read, store: routed.store, coding: coding(of: routed.request),
            requestID: routed.circumstances.requestID)
        let since: ChangesRequest.Since
        switch read.start {
        case "-1" where live == .events:
            return .stream(stream(from: snapshot, at: routed.circumstances.latest))
        case "-1": return .entities(snapshot)
        case "now": since = live == nil ? .now : .cursor(routed.circumstances.latest)
        case let text:
            let offset = try offset(text, ofState: true)
            if case .inSnapshot(let position)? = offset.place {
                (snapshot.cursor, snapshot.position) = (offset.cursor, position)
                return live == .events ? .stream(stream(from: snapshot, at: offset.cursor)) : .entities(snapshot)
            }
            since = .cursor(offset.cursor)
        }
        // Each commit that changes something here has messages; no other commit has any.
        let filter = routed.store.filter(path: routed.store.pointer, types: [], by: nil)
        return try follow(since, filter, .patches, read, live, routed)
    }

    private func follow(
        _ since: ChangesRequest.Since, _ filter: ChangesFilter, _ form: ChangesRequest.Form, _ read: DurableRead,
        _ live: Live?, _ routed: RoutedRequest
    ) throws(Problem) -> Plan {
        if case .cursor(let cursor) = since {
            let bounds = routed.circumstances.bounds
            guard cursor.epoch == bounds.latest.epoch, bounds.oldest <= cursor.version,
                cursor.version <= bounds.latest.version
            else { throw Problem.offsetGone }
        }
        let follow = changes(
            since, filter, form, read, wait: live == .longPoll ? Wait(duration: limits.waitDefault) : nil, routed.store,
            coding(of: routed.request), routed.circumstances.requestID)
        guard live == .events else { return .changes(follow) }
        return .stream(
            StreamRequest(source: .changes(follow), format: .events, lastEpoch: nil, isLost: false, debounce: nil))
    }

    private func changes(
        _ since: ChangesRequest.Since, _ filter: ChangesFilter, _ form: ChangesRequest.Form, _ read: DurableRead,
        wait: Wait?, _ store: VisibleStore, _ coding: ContentCoding?, _ requestID: RequestID
    ) -> ChangesRequest {
        ChangesRequest(
            since: since, limit: limits.changesLimitMax, filter: filter, store: store, form: form, wait: wait,
            debounce: nil, onLost: .problem, durable: read, style: .compact, coding: coding, requestID: requestID)
    }

    private func stream(from snapshot: EntitiesRequest, at cursor: Cursor) -> StreamRequest {
        var snapshot = snapshot
        snapshot.cursor = cursor
        let store = snapshot.store
        let follow = changes(
            .cursor(cursor), store.filter(path: store.pointer, types: [], by: nil), .patches, snapshot.read, wait: nil,
            store, nil, snapshot.requestID)
        return StreamRequest(
            source: .changes(follow), format: .events, lastEpoch: nil, isLost: false, debounce: nil,
            snapshot: snapshot)
    }

    private func durable(
        _ content: DurableRead.Content, _ parameters: Parameters, _ routed: RoutedRequest
    ) throws(Problem) -> DurableRead {
        var cursor: UInt64?
        if let text = try parameters.text("cursor") {
            // The answer names a later one, which has to fit 64 bits.
            guard let number: UInt64 = Parameters.wholeNumber(text), number < 1_000_000_000_000_000 else {
                throw Problem(
                    .badRequest, "bad-parameter", "cursor must be the last answer's Stream-Cursor, a whole number")
            }
            cursor = number
        }
        let start = try parameters.text("offset")
        guard start != nil || !parameters.has("live") else {
            throw Problem(.badRequest, "offset-required", "live needs an offset: -1, now, or a Stream-Next-Offset")
        }
        if let start, start != "-1", start != "now" {
            // HEAD does not need it, and refuses all the same what is no offset.
            _ = try offset(start, ofState: content != .commits)
        }
        let access = routed.store.access
        return DurableRead(
            content: content, start: start ?? "-1", cursor: cursor, known: try knownTags(routed.request),
            knownCompressed: knownCompressedTags(routed.request), visibility: access.visibility,
            isPublic: access.isUnlimited && access.subject == nil)
    }

    private func offset(_ text: String, ofState: Bool) throws(Problem) -> StreamOffset {
        guard let offset = StreamOffset(text: text, ofState: ofState) else {
            throw Problem(
                .badRequest, "bad-offset",
                "offset must be -1, now, or a Stream-Next-Offset of this stream, as an answer has it")
        }
        return offset
    }
}

private enum Live: Equatable {
    case longPoll
    case events

    init?(_ parameters: Parameters) throws(Problem) {
        switch try parameters.text("live") {
        case nil: return nil
        case "long-poll"?: self = .longPoll
        case "sse"?: self = .events
        case _?: throw Problem(.badRequest, "bad-parameter", "live can only be long-poll or sse")
        }
    }
}

extension Problem {
    /// An offset of another history, or of a part of the history that is no longer kept.
    package static var offsetGone: Problem {
        Problem(
            .gone, "offset-gone",
            "the offset is of another history, or what follows it is no longer kept; begin again with offset=-1, and forget what is known"
        )
    }
}
