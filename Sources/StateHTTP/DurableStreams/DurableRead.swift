internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

/// A read by the Durable Streams protocol: `PROTOCOL.md` of `durable-streams/durable-streams`, as of June 2026.
package struct DurableRead: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case commits
        case state(hasOldValues: Bool)
    }

    package var content: Content
    /// How many entities come before the first, in a read of those with which a state stream begins; nil behind them.
    package var position: Int?
    /// The offset as the request has it, `-1` or `now` included.
    var start: String
    var cursor: UInt64?
    var known: TagSet?
    var knownCompressed: Set<String>
    /// A name of what the client may see; nil for everything.
    var visibility: String?
    /// Whether every client may see what the answer says, so that shared caches may keep it.
    var isPublic: Bool

    func tag(to next: String) -> String { "\(start):\(next)\(visibility.map { ":\($0)" } ?? "")" }
    package func offset(_ cursor: Cursor) -> StreamOffset { StreamOffset(cursor, content == .commits ? nil : .behind) }
}

/// The time as live reads tell it, in intervals of 20 seconds from 9 October 2024 on (section 10.1 of the protocol).
///
/// A client echoes the interval of its last answer, so that a cache keeps no answer for longer.
package struct StreamTime: Sendable {
    private static let start = Timestamp(milliseconds: 1_728_432_000_000)
    private static let length: Int64 = 20_000
    private let interval: UInt64
    private let jitter: UInt64

    package init(_ now: Timestamp, random: Double) {
        interval = UInt64(max(0, (now.milliseconds &- Self.start.milliseconds) / Self.length))
        // 1 to 3600 seconds, in intervals.
        jitter = 1 + UInt64(random * 179)
    }

    /// The interval that an answer names: never the one that the client has named, and never one before it.
    func cursor(after known: UInt64?) -> String {
        guard let known, known >= interval else { return String(interval) }
        return String(known + jitter)
    }
}

/// A position in a stream, as the Durable Streams protocol names it (section 8): texts of one stream sort like positions.
package struct StreamOffset: Hashable, Sendable {
    package enum Place: Hashable, Sendable {
        case inSnapshot(Int)
        case behind
    }

    package var cursor: Cursor
    /// Where in the state stream it is; nil in the stream of commits, where a version is one position.
    package var place: Place?

    package init(_ cursor: Cursor, _ place: Place? = nil) {
        self.cursor = cursor
        self.place = place
    }

    init?(text: String, ofState: Bool) {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == (ofState ? 3 : 2), let epoch = Epoch(parts[0]),
            let version = Self.number(parts[1], Version.self)
        else { return nil }
        cursor = Cursor(epoch, version)
        guard ofState else { return }
        if parts[2] == "z" {
            place = .behind
        } else {
            guard let count = Self.number(parts[2], UInt32.self) else { return nil }
            place = .inSnapshot(Int(count))
        }
    }

    private static func number<Number: FixedWidthInteger>(_ text: Substring, _: Number.Type) -> Number? {
        guard text.utf8.count == Number.bitWidth / 4,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        return Number(text, radix: 16)
    }

    /// `<epoch>_<version>`, and in the state stream `_<count of entities>` or `_z`; the numbers are hexadecimal.
    package var text: String {
        let version = "\(cursor.epoch)_\(Self.digits(cursor.version))"
        return switch place {
        case .inSnapshot(let count)?: "\(version)_\(Self.digits(UInt32(clamping: count)))"
        case .behind?: "\(version)_z"
        case nil: version
        }
    }

    private static func digits(_ number: some FixedWidthInteger) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: number.bitWidth / 4 - digits.utf8.count) + digits
    }
}

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
        return try stream(routed, ofState: path == ["state"])
    }

    private func stream(_ routed: RoutedRequest, ofState: Bool) throws(Problem) -> Plan {
        let store = routed.store
        let known: Set<ExactText> =
            ofState
            ? ["offset", "live", "cursor", "old-values"] : ["offset", "live", "cursor", "path", "types", "by", "as"]
        let parameters = try Parameters(routed.target, known: known, others: .ignored)
        // Each commit that changes something here has messages of the state; no other commit has any.
        let filter = try ofState ? store.filter(path: store.pointer, types: [], by: nil) : filter(parameters, store)
        let form: ChangesRequest.Form = try isKeyed(parameters) ? .keyed : .patches
        let live = try parameters.choice("live", of: ["long-poll", "sse"])
        let (isPoll, isEvents) = (live == "long-poll", live == "sse")
        let content: DurableRead.Content = ofState ? .state(hasOldValues: try parameters.flag("old-values")) : .commits
        var read = try durable(content, parameters, routed)
        guard routed.request.method == .get else { return .respond(metadata(read, routed)) }
        let bounds = routed.circumstances.bounds
        var follow = ChangesRequest(
            since: .now, limit: limits.changesLimitMax, filter: filter, store: store, form: form,
            wait: isPoll ? Wait(duration: limits.waitDefault) : nil, durable: read,
            coding: isEvents ? nil : coding(of: routed.request), name: routed.circumstances.name)
        func entities(at cursor: Cursor?, from position: Int) -> Plan {
            read.position = position
            follow.durable = read
            if let cursor { follow.since = .cursor(cursor) }
            guard isEvents else { return .entities(follow, read) }
            follow.since = .cursor(cursor ?? bounds.latest)
            return .stream(StreamRequest(.changes(follow), .events))
        }
        switch read.start {
        case "-1" where ofState: return entities(at: nil, from: 0)
        case "-1": follow.since = .oldest
        case "now": follow.since = live == nil ? .now : .cursor(bounds.latest)
        case let text:
            let offset = try offset(text, ofState: ofState)
            if case .inSnapshot(let position)? = offset.place { return entities(at: offset.cursor, from: position) }
            follow.since = .cursor(offset.cursor)
        }
        if case .cursor(let cursor) = follow.since {
            guard cursor.epoch == bounds.latest.epoch, bounds.oldest <= cursor.version,
                cursor.version <= bounds.latest.version
            else { throw .offsetGone }
        }
        return isEvents ? .stream(StreamRequest(.changes(follow), .events)) : .changes(follow)
    }

    private func durable(
        _ content: DurableRead.Content, _ parameters: Parameters, _ routed: RoutedRequest
    ) throws(Problem) -> DurableRead {
        // The answer names a later one, which has to fit 64 bits.
        let cursor = try parameters.wholeNumber(
            "cursor", in: 0...UInt64(999_999_999_999_999), "the last answer's Stream-Cursor, a whole number")
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
