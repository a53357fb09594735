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

    /// Only a browser gets the fields for browsers.
    ///
    /// No cache stores an answer to a POST without them either (RFC 9110, section 9.3.3).
    static func receipt(
        _ body: consuming [UInt8], style: Style = .compact, cursor: ShortText, isForBrowser: Bool
    ) -> Response {
        Response(isForBrowser ? browserTemplate : receiptTemplate, .init(cursor), body: line(body, style))
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

    /// A JSON answer with a body that ends with a line feed already, or is compressed.
    static func json(_ status: HTTPResponse.Status = .ok, of body: [UInt8], latest: Cursor?) -> Response {
        var fields = Self.fieldsOfJSON
        if let latest { fields.append(HTTPField(name: .stateCursor, value: latest.description)) }
        return Response(status: status, fields: fields, body: body)
    }
}

extension ShortText {
    init(_ cursor: Cursor) { self.init { cursor.write(to: $0) } }

    init(quoting hash: ContentHash) {
        self.init { bytes in
            bytes[0] = UInt8(ascii: "\"")
            let end =
                1 + hash.write(to: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(bytes)[1...]))
            bytes[end] = UInt8(ascii: "\"")
            return end + 1
        }
    }

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
        to problem: Problem, latest: Cursor?, requestID: RequestID, style: Style = .compact
    ) -> Response {
        var response = Response.json(
            problem.status, Self.document(problem, latest: latest, requestID: requestID), style: style, latest: latest)
        response.fields[.contentType] = "application/problem+json"
        for field in problem.fields { response.fields[field.name] = field.value }
        response.problems = [problem.code: 1]
        return response
    }

    static func document(_ problem: Problem, latest: Cursor?, requestID: RequestID?) -> [UInt8] {
        var writer = JSONWriter()
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.key("type", &isFirst)
        // RFC 9457, section 4.2.1: `about:blank` where the status tells the kind of problem; `code` tells the rest.
        writer.string("about:blank")
        writer.member("title", problem.status.reasonPhrase, &isFirst)
        writer.key("status", &isFirst)
        writer.integer(problem.status.code)
        writer.member("code", problem.code, &isFirst)
        writer.member("detail", problem.detail, &isFirst)
        writer.member("requestId", requestID?.text, &isFirst)
        writer.member("traceId", requestID?.trace?.traceID, &isFirst)
        writer.member("cursor", latest?.description, &isFirst)
        if !problem.parts.isEmpty {
            writer.key("errors", &isFirst)
            writer.byte(UInt8(ascii: "["))
            var isFirstPart = true
            for part in problem.parts {
                writer.separator(&isFirstPart)
                writer.raw("{\"pointer\":")
                writer.string(part.pointer)
                writer.raw(",\"detail\":")
                writer.string(part.detail)
                writer.byte(UInt8(ascii: "}"))
            }
            writer.byte(UInt8(ascii: "]"))
        }
        for member in problem.members {
            writer.separator(&isFirst)
            writer.string(member.name)
            writer.byte(UInt8(ascii: ":"))
            writer.raw(member.json)
        }
        writer.byte(UInt8(ascii: "}"))
        return writer.bytes
    }
}
