package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

/// Streams: `text/event-stream` (the HTML standard, section 9.2) and NDJSON.
extension Contract {
    /// The stream format that `Accept` asks for, or nil if it names none of the offered ones or gives JSON more weight.
    func streamFormat(_ request: Request, offersLines: Bool = true) -> StreamRequest.Format? {
        guard request.method == .get, request.head.known.contains(.accept) else { return nil }
        var best: (format: StreamRequest.Format, weight: Double)?
        var ofJSON = 0.0
        for (type, weight) in request[values: .accept].flatMap(WeightedNames.read) {
            let isLines = offersLines && Self.linesTypes.contains(type)
            if isLines || type == "text/event-stream" {
                if weight > best?.weight ?? 0 { best = (isLines ? .lines : .events, weight) }
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
            throw .badParameter("a stream takes no \(name)")
        }
        // The stream begins with the value in any case: the cursor only decides whether a reset comes before it.
        let lastID = Self.lastEventID(request)
        var read = read
        read.atLeast = lastID.flatMap { Cursor(text: $0)?.version }
        return StreamRequest(.value(read), format, lastID: lastID, debounce: try debounce(parameters))
    }

    static func lastEventID(_ request: Request) -> String? { request[.lastEventID].flatMap { $0.isEmpty ? nil : $0 } }

    /// A cursor in `lastID`, the value of `Last-Event-ID`, beats `since`.
    func stream(_ follow: ChangesRequest, _ format: StreamRequest.Format, _ lastID: String?) -> StreamRequest {
        var follow = follow
        if let cursor = lastID.flatMap({ Cursor(text: $0) }) { follow.since = .cursor(cursor) }
        // A small chunk bounds what the server keeps for a client that does not read; a large one costs less for each commit.
        follow.limit = min(limits.changesLimitMax, 1000)
        return StreamRequest(.changes(follow), format, lastID: lastID, debounce: follow.debounce)
    }

    /// The head of a stream, and its first bytes.
    ///
    /// `retry:` stands in the block of the first event, because some readers make an event of a block without data.
    /// A stream of commits begins with its progress, so that a client that is cut off early comes back to its start.
    /// The `start` is nil if a value comes first; `retry` is in milliseconds.
    package func response(to request: StreamRequest, latest: Cursor, start: Cursor?, retry: Int) -> Response {
        guard request.format == .events else { return .streaming("application/x-ndjson", latest: latest) }
        let first = Array("retry: \(retry)\n".utf8) + (start.map { progress(request, $0) } ?? [])
        return .streaming("text/event-stream", latest: latest, first: first)
    }

    /// The first bytes of a value's event, of a reset before it as well, up to the data; ``eventData(of:)`` follows.
    ///
    /// A reset has no ID: a client that loses its connection between it and the next event gets both again.
    package func head(of reading: Reading, isFirst: Bool, reset reason: ResetReason?) -> [UInt8] {
        var writer = JSONWriter()
        if let reason { writer.raw("event: reset\ndata: {\"reason\":\"\(reason.rawValue)\"}\n\n".utf8) }
        let name = reading.encoded == nil ? "removed" : isFirst || reason != nil ? "snapshot" : "change"
        begin(name, reading.cursor, to: &writer)
        return writer.bytes
    }

    /// The data of a value's event and its end, the same bytes for each cursor; O(n) in the size of the value.
    package func eventData(of encoded: Encoded?) -> [UInt8] {
        EventData.lines(of: encoded?.json ?? Array("null".utf8)[...]) + "\n\n".utf8
    }

    package func chunk(of request: StreamRequest, _ page: ChangesPage) -> [UInt8] {
        guard case .changes(let follow) = request.source else { return [] }
        var writer = JSONWriter(capacity: page.commits.reduce(0) { $0 + $1.action.count + $1.patch.count + 220 })
        let epoch = page.latest.epoch
        for commit in page.commits {
            if request.format == .events { begin("change", Cursor(epoch, commit.version), to: &writer) }
            // The text of a commit that may be too long for a line has to be read once more.
            if request.format == .events, commit.weight > EventData.lineBytesMax {
                var data = JSONWriter(capacity: commit.weight)
                write(commit, of: follow.store, as: follow.form, epoch: epoch, to: &data)
                writer.raw(EventData.lines(of: data.bytes[...]))
            } else {
                write(commit, of: follow.store, as: follow.form, epoch: epoch, to: &writer)
            }
            writer.raw(request.format == .events ? "\n\n" : "\n")
        }
        // The filter has left out the newest examined commits: the client's cursor advances all the same.
        if page.commits.last?.version != page.next { writer.raw(progress(request, Cursor(epoch, page.next))) }
        return writer.bytes
    }

    /// The chunk that tells a client that what it knows counts no more, with the value or the state to go on from.
    package func chunk(of request: StreamRequest, reset reason: ResetReason, _ state: Reading) -> [UInt8] {
        guard request.format == .lines else {
            return head(of: state, isFirst: true, reset: reason) + eventData(of: state.encoded)
        }
        let bytes = state.encoded?.json ?? Array("null".utf8)[...]
        var writer = JSONWriter(capacity: bytes.count + 256)
        reset(reason.rawValue, bytes, next: state.cursor, to: &writer)
        writer.raw("\n")
        return writer.bytes
    }

    /// The chunk for a stream whose heartbeat is due: `progress` with the cursor, or without one a comment or an empty line.
    package func heartbeat(of request: StreamRequest, movedTo cursor: Cursor?) -> [UInt8] {
        // Readers of NDJSON ignore empty lines.
        cursor.map { progress(request, $0) } ?? Array((request.format == .events ? ":\n\n" : "\n").utf8)
    }

    private func progress(_ request: StreamRequest, _ cursor: Cursor) -> [UInt8] {
        switch request.format {
        case .events: Array("event: progress\nid: \(cursor)\ndata: {}\n\n".utf8)
        case .lines: Array("{\"next\":\"\(cursor)\"}\n".utf8)
        }
    }

    private func begin(_ name: String, _ cursor: Cursor, to writer: inout JSONWriter) {
        writer.raw("event: \(name)\nid: \(cursor)\ndata: ".utf8)
    }
}

/// The data of a server-sent event in lines of a bounded length: aiohttp reads no line longer than 512 KiB.
///
/// A reader joins them with line feeds (the HTML standard, section 9.2.6), white space between two tokens of JSON.
enum EventData {
    /// From this length on, a line ends behind the next comma between two members or elements.
    static let lineBytesMax = 128 << 10

    /// Compact JSON as the content of `data:` lines, without the first `data: `; a longer string stays in one line.
    static func lines(of json: ArraySlice<UInt8>) -> [UInt8] {
        guard json.count > lineBytesMax else { return Array(json) }
        var lines: [UInt8] = []
        lines.reserveCapacity(json.count + json.count / lineBytesMax * 8)
        var (begin, index) = (json.startIndex, json.startIndex)
        while index < json.endIndex {
            let (place, byte) = (index, json[index])
            index = byte == UInt8(ascii: "\"") ? JSONText.endOfString(place, in: json) : place + 1
            if byte == UInt8(ascii: ","), index - begin > lineBytesMax {
                lines += json[begin..<index]
                lines += "\ndata: ".utf8
                begin = index
            }
        }
        return lines + json[begin...]
    }
}
