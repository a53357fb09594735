package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

/// Streams: `text/event-stream` (the HTML standard, section 9.2) and NDJSON.
///
/// Streams of the same source, format and cursor share each chunk.
extension Contract {
    // MARK: Requests

    /// The stream format that `Accept` asks for, or nil if it names none of the offered ones or gives JSON more weight.
    func streamFormat(_ request: Request, offered: [StreamRequest.Format]) -> StreamRequest.Format? {
        guard request.method == .get, request.head.known.contains(.accept) else { return nil }
        var best: (format: StreamRequest.Format, weight: Double)?
        var ofJSON = 0.0
        for (type, weight) in request[values: .accept].flatMap(WeightedNames.read) {
            if let format = offered.first(where: { $0.mediaTypes.contains(type) }) {
                if weight > best?.weight ?? 0 { best = (format, weight) }
            } else if type == "application/json" {
                ofJSON = max(ofJSON, weight)
            }
        }
        return best.flatMap { $0.weight >= ofJSON ? $0.format : nil }
    }

    func stream(
        _ read: ReadRequest, _ format: StreamRequest.Format, _ request: Request, _ parameters: Parameters
    ) throws(Problem) -> StreamRequest {
        for name in ["version", "at-least", "until", "until-exists", "explain"] where parameters.has(name) {
            throw Problem(.badRequest, "bad-parameter", "a stream takes no \(name)")
        }
        // The stream begins with the value in any case: the cursor only decides whether a reset comes before it.
        let lastID = Self.lastEventID(request)
        var read = read
        let cursor = lastID.flatMap { Cursor(text: $0) }
        read.atLeast = cursor?.version
        return StreamRequest(
            source: .value(read), format: format, lastEpoch: cursor?.epoch, isLost: lastID != nil && cursor == nil,
            debounce: try debounce(parameters))
    }

    static func lastEventID(_ request: Request) -> String? {
        request[.lastEventID].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// A cursor in `lastID`, the value of `Last-Event-ID`, beats `since`.
    func stream(_ follow: ChangesRequest, _ format: StreamRequest.Format, _ lastID: String?) -> StreamRequest {
        var follow = follow
        let cursor = lastID.flatMap { Cursor(text: $0) }
        if let cursor { follow.since = .cursor(cursor) }
        // A small chunk bounds what the server keeps for a client that does not read; a large one costs less for each commit.
        follow.limit = min(limits.changesLimitMax, 1000)
        return StreamRequest(
            source: .changes(follow), format: format, lastEpoch: cursor?.epoch, isLost: lastID != nil && cursor == nil,
            debounce: follow.debounce)
    }

    // MARK: Chunks

    /// The head of a stream, and its first bytes.
    ///
    /// `retry:` stands in the block of the first event: some readers make an event of a block without data. A stream of
    /// commits begins with its progress, so that a client that loses its connection before the first commit comes back to
    /// its start.
    ///
    /// - Parameters:
    ///   - start: the cursor after which the stream sends commits, or nil if a value comes first, which has its own ID.
    ///   - retry: how many milliseconds an EventSource waits before it connects again.
    package func response(to request: StreamRequest, latest: Cursor, start: Cursor?, retry: Int) -> Response {
        let isEvents = request.format == .events
        var first = JSONWriter()
        if isEvents { first.raw("retry: \(retry)\n".utf8) }
        if isEvents, let start { progress(request, start, to: &first) }
        return Response(
            status: .ok,
            fields: [
                .contentType: isEvents ? "text/event-stream" : "application/x-ndjson", .cacheControl: "no-store",
                .xContentTypeOptions: "nosniff",
                .crossOriginResourcePolicy: "same-origin", .accelBuffering: "no", .stateCursor: latest.description,
            ],
            body: first.bytes)
    }

    /// The chunk with the value of a selection: a `snapshot` first, then a `change`, or `removed` without a value.
    package func chunk(of request: StreamRequest, _ reading: Reading, isFirst: Bool) -> [UInt8] {
        var writer = JSONWriter(capacity: (reading.encoded?.body.count ?? 0) + 128)
        guard let encoded = reading.encoded else {
            event("removed", reading.cursor, Array("null".utf8)[...], to: &writer)
            return writer.bytes
        }
        event(isFirst ? "snapshot" : "change", reading.cursor, encoded.json, to: &writer)
        return writer.bytes
    }

    /// The first bytes of a value's event, of a reset before it as well, up to the data; ``eventData(of:)`` follows.
    package func head(of reading: Reading, isFirst: Bool, reset reason: ResetReason? = nil) -> [UInt8] {
        var writer = JSONWriter()
        if let reason { event(of: reason, to: &writer) }
        begin(isFirst || reason != nil ? "snapshot" : "change", reading.cursor, to: &writer)
        return writer.bytes
    }

    /// The data of a value's event, and its end: the same bytes for each cursor at which the value is sent.
    ///
    /// The cost is O(n) in the size of the value.
    package func eventData(of encoded: Encoded) -> [UInt8] { EventData.lines(of: encoded.json) + "\n\n".utf8 }

    /// The chunk with the commits of a page, in order.
    package func chunk(of request: StreamRequest, _ page: ChangesPage) -> [UInt8] {
        guard case .changes(let follow) = request.source else { return [] }
        var writer = JSONWriter(capacity: page.commits.reduce(0) { $0 + $1.action.count + $1.patch.count + 220 })
        let epoch = page.latest.epoch
        for commit in page.commits {
            switch request.format {
            case .events:
                begin("change", Cursor(epoch, commit.version), to: &writer)
                if commit.weight > EventData.lineBytesMax {
                    var data = JSONWriter(capacity: commit.weight)
                    write(commit, of: follow.store, as: follow.form, epoch: epoch, to: &data)
                    writer.raw(EventData.lines(of: data.bytes[...]))
                } else {
                    write(commit, of: follow.store, as: follow.form, epoch: epoch, to: &writer)
                }
                writer.raw("\n\n")
            case .lines:
                write(commit, of: follow.store, as: follow.form, epoch: epoch, to: &writer)
                writer.byte(UInt8(ascii: "\n"))
            }
        }
        // The filter has left out the newest examined commits: the client's cursor advances all the same.
        if page.commits.last?.version != page.next { progress(request, Cursor(epoch, page.next), to: &writer) }
        return writer.bytes
    }

    /// The chunk that tells a client that what it knows counts no more, with the state that it goes on from.
    ///
    /// - Parameter state: the value of the selection, or the state of the addressed store for a stream of changes.
    package func chunk(of request: StreamRequest, reset reason: ResetReason, _ state: Reading) -> [UInt8] {
        let bytes = state.encoded?.json ?? Array("null".utf8)[...]
        var writer = JSONWriter(capacity: bytes.count + 256)
        switch request.format {
        case .events:
            event(of: reason, to: &writer)
            event(state.encoded == nil ? "removed" : "snapshot", state.cursor, bytes, to: &writer)
        case .lines:
            writer.raw("{\"reset\":true,\"reason\":")
            writer.string(reason.code)
            writer.raw(",\"state\":")
            writer.raw(bytes)
            writer.raw(",\"next\":")
            writer.string(state.cursor.description)
            writer.raw("}\n")
        }
        return writer.bytes
    }

    /// The chunk for a stream whose heartbeat is due: `progress` with the cursor, or without one a comment or an empty line.
    package func heartbeat(of request: StreamRequest, movedTo cursor: Cursor?) -> [UInt8] {
        var writer = JSONWriter()
        switch (cursor, request.format) {
        case (let cursor?, _): progress(request, cursor, to: &writer)
        case (nil, .events): writer.raw(":\n\n")
        // Readers of NDJSON ignore empty lines.
        case (nil, .lines): writer.raw("\n")
        }
        return writer.bytes
    }

    /// The reset has no ID: a client that loses its connection between it and the next event gets both again.
    private func event(of reason: ResetReason, to writer: inout JSONWriter) {
        writer.raw("event: reset\ndata: {\"reason\":\"\(reason.code)\"}\n\n".utf8)
    }

    private func progress(_ request: StreamRequest, _ cursor: Cursor, to writer: inout JSONWriter) {
        switch request.format {
        case .events: event("progress", cursor, Array("{}".utf8)[...], to: &writer)
        case .lines:
            writer.raw("{\"next\":")
            writer.string(cursor.description)
            writer.raw("}\n")
        }
    }

    private func event(_ name: String, _ cursor: Cursor, _ data: ArraySlice<UInt8>, to writer: inout JSONWriter) {
        begin(name, cursor, to: &writer)
        if data.count > EventData.lineBytesMax { writer.raw(EventData.lines(of: data)) } else { writer.raw(data) }
        writer.raw("\n\n")
    }

    private func begin(_ name: String, _ cursor: Cursor, to writer: inout JSONWriter) {
        writer.raw("event: \(name)\nid: \(cursor)\ndata: ".utf8)
    }
}

extension ResetReason {
    var code: String {
        switch self {
        case .lost: "cursor-lost"
        case .expired: "cursor-expired"
        case .slow: "slow-reader"
        case .damaged: "journal-damaged"
        }
    }
}

extension StreamRequest.Format {
    fileprivate var mediaTypes: [String] {
        switch self {
        case .events: ["text/event-stream"]
        case .lines: Contract.linesTypes
        }
    }
}

/// The data of a server-sent event, in lines of a bounded length.
///
/// Compact JSON has no line break, so one `data:` line could hold any value; but readers have a longest line, aiohttp's
/// 512 KiB. A reader joins the lines of an event with line feeds (the HTML standard, section 9.2.6), which are white
/// space between two tokens of JSON.
enum EventData {
    /// From this length on, a line ends behind the next comma between two members or elements.
    static let lineBytesMax = 128 << 10

    /// Compact JSON as the content of `data:` lines, without the first `data: `; a longer string stays in one line.
    static func lines(of json: ArraySlice<UInt8>) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(json.count + json.count / lineBytesMax * 8)
        var (begin, isInString, isEscaped) = (json.startIndex, false, false)
        for index in json.indices {
            let byte = json[index]
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == UInt8(ascii: ","), index - begin >= lineBytesMax {
                lines += json[begin...index]
                lines += "\ndata: ".utf8
                begin = index + 1
            }
        }
        return lines + json[begin...]
    }
}
