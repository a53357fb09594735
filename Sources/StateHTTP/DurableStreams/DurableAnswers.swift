package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

/// Answers of the Durable Streams protocol (sections 5.5 to 5.8 and 10).
///
/// An array of messages ends without a line feed: section 9.1 names the bytes of an empty one.
extension Contract {
    private static let unchanging = "max-age=86400, immutable"

    func metadata(_ read: DurableRead, _ routed: RoutedRequest) -> Response {
        var response = Response.json(of: [], latest: nil)
        response.fields[.streamNextOffset] = read.offset(routed.circumstances.latest).text
        return response
    }

    package func response(
        to request: ChangesRequest, _ read: DurableRead, _ page: ChangesPage, at time: StreamTime,
        messages: () throws -> [UInt8]
    ) rethrows -> Response {
        let next = read.offset(Cursor(page.latest.epoch, page.next)).text
        let isEmpty = page.commits.isEmpty && !page.isMore
        var fields: HTTPFields = [.streamNextOffset: next]
        if !page.isMore { fields[.streamUpToDate] = "true" }
        if request.wait != nil { fields[.streamCursor] = time.cursor(after: read.cursor) }
        guard request.wait == nil || !isEmpty else {
            fields[.cacheControl] = "no-store"
            fields[.xContentTypeOptions] = "nosniff"
            fields[.crossOriginResourcePolicy] = "same-origin"
            // The clients that wait in front of a cache are answered together; each comes back with the newer cursor.
            if read.isPublic, read.start != "now" { fields[.accelExpires] = "1" }
            return Response(status: .noContent, fields: fields)
        }
        let caching: String? =
            switch read.start {
            case _ where isEmpty: nil
            case "now": nil
            case _ where page.isMore && read.start != "-1": Self.unchanging
            // Messages that ended a wait stay what they are, and there may be more by now.
            case _ where request.wait != nil && read.start != "-1": "max-age=60, stale-while-revalidate=300"
            // The beginning moves when the journal drops commits.
            case _: "no-cache"
            }
        return try response(read, fields, next, caching, request.coding, body: messages)
    }

    package func response(
        to request: ChangesRequest, _ read: DurableRead, _ page: EntityPage, at cursor: Cursor, now latest: Cursor,
        _ time: StreamTime
    ) throws -> Response {
        let next = offset(behind: page, at: cursor).text
        var fields: HTTPFields = [.streamNextOffset: next]
        if request.wait != nil { fields[.streamCursor] = time.cursor(after: read.cursor) }
        if !page.isMore, cursor == latest { fields[.streamUpToDate] = "true" }
        // The answer to -1 changes with time; a part of a snapshot does not.
        let caching = read.start == "-1" ? nil : Self.unchanging
        return try response(read, fields, next, caching, request.coding) {
            try messages(of: request.store, from: read.position ?? 0, page, at: cursor)
        }
    }

    private func response(
        _ read: DurableRead, _ fields: HTTPFields, _ next: String, _ caching: String?, _ coding: ContentCoding?,
        body: () throws -> [UInt8]
    ) rethrows -> Response {
        var fields = fields
        fields[.cacheControl] = caching.map { "\(read.isPublic ? "public" : "private"), \($0)" } ?? "no-store"
        // The offsets of a page do not tell clients apart that see other parts of it.
        if !read.isPublic, caching != nil { fields[.vary] = "Authorization" }
        let tag = read.tag(to: next)
        // A tag names what lies between two offsets; at the end, the answer to `now` is another one each time.
        if read.start != "now" { fields[.eTag] = "\"\(tag)\"" }
        if read.start != "now", read.known?.contains(tag) ?? false {
            // The client's state says which answer this one stands for, and spares the making of the messages.
            let forms = read.knownCompressed.filter { ContentCoding.plainTag($0) == tag }
            let wanted = coding.map { tag + $0.tagSuffix }
            if let form = forms.first(where: { $0 == wanted }) ?? forms.min() {
                fields[.eTag] = "\"\(form)\""
                fields.vary(by: "Accept-Encoding")
            }
            return Response(status: .notModified, fields: fields)
        }
        fields[.contentType] = "application/json"
        fields[.xContentTypeOptions] = "nosniff"
        fields[.crossOriginResourcePolicy] = "same-origin"
        var response = compressed(Response(status: .ok, fields: fields, body: try body()), coding)
        if let coding, response.fields[.contentEncoding] != nil, fields[.eTag] != nil {
            response.fields[.eTag] = "\"\(tag)\(coding.tagSuffix)\""
        }
        return response
    }

    func offset(behind page: EntityPage, at cursor: Cursor) -> StreamOffset {
        StreamOffset(cursor, page.isMore ? .inSnapshot(page.end) : .behind)
    }

    /// The head of a stream of events, without an offset: a client could take it for the end of the events.
    ///
    /// It has the first event too if the client has everything already; `start` is nil if entities come first.
    package func response(
        to request: StreamRequest, _ read: DurableRead, latest: Cursor, start: Cursor?, at time: StreamTime
    ) -> Response {
        let isAtEnd = start.map { $0 == latest } ?? false
        return .streaming(
            "text/event-stream", caching: "no-store, no-cache", latest: nil,
            first: isAtEnd ? progress(read, latest, at: time) : [])
    }

    package func chunk(of read: DurableRead, _ page: ChangesPage, messages: [UInt8], at time: StreamTime) -> [UInt8] {
        events(read, messages, read.offset(Cursor(page.latest.epoch, page.next)), isUpToDate: !page.isMore, time)
    }

    package func chunk(
        of read: DurableRead, _ store: VisibleStore, from position: Int, _ page: EntityPage, at cursor: Cursor,
        now latest: Cursor, _ time: StreamTime
    ) throws -> [UInt8] {
        events(
            read, try messages(of: store, from: position, page, at: cursor), offset(behind: page, at: cursor),
            isUpToDate: !page.isMore && cursor == latest, time)
    }

    package func progress(_ read: DurableRead, _ cursor: Cursor, at time: StreamTime) -> [UInt8] {
        var writer = JSONWriter()
        control(read, read.offset(cursor), isUpToDate: true, time, to: &writer)
        return writer.bytes
    }

    private func events(
        _ read: DurableRead, _ messages: [UInt8], _ next: StreamOffset, isUpToDate: Bool, _ time: StreamTime
    ) -> [UInt8] {
        var writer = JSONWriter(capacity: messages.count + 256)
        // An empty array is no data.
        if messages.count > 2 {
            writer.raw("event: data\ndata:")
            writer.raw(EventData.lines(of: messages[...]))
            writer.raw("\n\n")
        }
        control(read, next, isUpToDate: isUpToDate, time, to: &writer)
        return writer.bytes
    }

    private func control(
        _ read: DurableRead, _ next: StreamOffset, isUpToDate: Bool, _ time: StreamTime, to writer: inout JSONWriter
    ) {
        writer.raw("event: control\ndata:")
        writer.object {
            $0.member("streamNextOffset", next.text)
            $0.member("streamCursor", time.cursor(after: read.cursor))
            if isUpToDate { $0.member("upToDate", true) }
        }
        writer.raw("\n\n")
    }

    package func messages(of request: ChangesRequest, _ page: ChangesPage) -> [UInt8] {
        var writer = JSONWriter(capacity: 2 + page.weight)
        writer.array(page.commits) { commit, writer in
            write(commit, of: request.store, as: request.form, epoch: page.latest.epoch, to: &writer)
        }
        return writer.bytes
    }
}
