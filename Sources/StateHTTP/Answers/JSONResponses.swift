package import HTTPMessages
package import HTTPTypes
internal import StateJSON
package import StateStore

extension Response {
    private static let fieldsOfJSON: HTTPFields = [
        .contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        .crossOriginResourcePolicy: "same-origin",
    ]

    private static let receiptTemplate = ResponseTemplate([
        .fixed(HTTPField(name: .contentType, value: "application/json")), .varying(.stateCursor),
    ])
    private static let browserTemplate = ResponseTemplate(fieldsOfJSON.map { .fixed($0) } + [.varying(.stateCursor)])

    /// Only a browser gets fields for browsers: no cache stores an answer to a POST anyway (RFC 9110, section 9.3.3).
    static func receipt(
        _ body: consuming [UInt8], style: Style = .compact, cursor: ShortText, isForBrowser: Bool
    ) -> Response {
        Response(isForBrowser ? browserTemplate : receiptTemplate, cursor, body: line(body, style))
    }

    /// JSON with a line feed behind it, so that the prompt of a terminal does not stick to it.
    private static func line(_ json: consuming [UInt8], _ style: Style) -> [UInt8] {
        json.append(UInt8(ascii: "\n"))
        return style == .pretty ? JSONText.indented(json) : json
    }

    package static func json(
        _ status: HTTPResponse.Status, _ body: consuming [UInt8], style: Style = .compact, latest: Cursor? = nil
    ) -> Response {
        json(status, of: line(body, style), latest: latest)
    }

    /// The body ends with a line feed already, or is compressed.
    static func json(_ status: HTTPResponse.Status = .ok, of body: [UInt8], latest: Cursor?) -> Response {
        var fields = Self.fieldsOfJSON
        if let latest { fields.append(HTTPField(name: .stateCursor, value: latest.description)) }
        return Response(status: status, fields: fields, body: body)
    }

    static func streaming(
        _ type: String, caching: String = "no-store", latest: Cursor?, first body: [UInt8] = []
    ) -> Response {
        var fields: HTTPFields = [
            .contentType: type, .cacheControl: caching, .xContentTypeOptions: "nosniff",
            .crossOriginResourcePolicy: "same-origin", .accelBuffering: "no",
        ]
        if let latest { fields[.stateCursor] = latest.description }
        return Response(status: .ok, fields: fields, body: body)
    }

    package static func backup(at cursor: Cursor) -> Response { .streaming("application/x-tar", latest: cursor) }
}

extension ShortText {
    init(_ cursor: Cursor) { self.init { cursor.write(to: $0) } }

    init(quoting tag: String) {
        self.init { bytes in
            tag.withBytes { tag in
                bytes[0] = UInt8(ascii: "\"")
                _ = UnsafeMutableBufferPointer(rebasing: bytes[1...]).update(from: tag)
                bytes[tag.count + 1] = UInt8(ascii: "\"")
                return tag.count + 2
            }
        }
    }
}

extension Contract {
    /// The answer with a problem document (RFC 9457).
    package func response(
        to problem: Problem, latest: Cursor?, name: RequestName, style: Style = .compact
    ) -> Response {
        var response = Response.json(
            problem.status, Self.document(problem, latest: latest, name: name), style: style, latest: latest)
        response.fields[.contentType] = "application/problem+json"
        for field in problem.fields { response.fields[field.name] = field.value }
        response.problems = [problem.code: 1]
        return response
    }

    static func document(_ problem: Problem, latest: Cursor?, name: RequestName?) -> [UInt8] {
        JSONWriter.object { writer in
            // RFC 9457, section 4.2.1: `about:blank` where the status tells the kind of problem; `code` tells the rest.
            writer.member("type", "about:blank")
            writer.member("title", problem.status.reasonPhrase)
            writer.member("status", problem.status.code)
            writer.member("code", problem.code)
            writer.member("detail", problem.detail)
            writer.member("requestId", name?.text)
            writer.member("traceId", name?.trace?.traceID)
            writer.member("cursor", latest?.description)
            if !problem.parts.isEmpty {
                writer.key("errors")
                writer.array(problem.parts) { part, writer in
                    writer.object {
                        $0.member("pointer", part.pointer)
                        $0.member("detail", part.detail)
                    }
                }
            }
            for member in problem.members {
                writer.key(escaping: member.name)
                writer.raw(member.json)
            }
        }
    }
}

extension HTTPField.Name {
    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is not a field name") }
        return name
    }

    package static let stateCursor = known("State-Cursor")
    /// Why the answer to a request with `wait` has not waited.
    package static let stateWait = known("State-Wait")
    /// For how many seconds a server of a cluster may have missed what others acknowledge.
    package static let stateAge = known("State-Age")
    package static let idempotencyReplayed = known("Idempotency-Replayed")
    /// The preferences that the server has followed (RFC 7240).
    package static let preferenceApplied = known("Preference-Applied")
    /// Links to other resources (RFC 8288).
    package static let link = known("Link")
    package static let prefer = known("Prefer")
    /// `no` on streams: nginx then does not buffer the answer.
    package static let accelBuffering = known("X-Accel-Buffering")
    /// For how many seconds nginx keeps the answer in its cache, whatever `Cache-Control` says.
    package static let accelExpires = known("X-Accel-Expires")
    package static let streamNextOffset = known("Stream-Next-Offset")
    package static let streamUpToDate = known("Stream-Up-To-Date")
    /// The interval of time that the client of a live read echoes as `cursor`.
    package static let streamCursor = known("Stream-Cursor")
}
