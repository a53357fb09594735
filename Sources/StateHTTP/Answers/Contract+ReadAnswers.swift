package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    /// Says what a selection is: 200, 304 when the client has it, 404 when there is nothing.
    package func response(to request: ReadRequest, _ reading: Reading) -> Response {
        guard let encoded = reading.encoded else {
            return response(
                to: Self.nothing(at: request.selection, request.scope), latest: reading.cursor,
                requestID: request.requestID,
                style: request.style)
        }
        // Indented bytes are other bytes: their tag is weak.
        let tag = request.style == .pretty ? "W/\"\(encoded.tag)\"" : "\"\(encoded.tag)\""
        var fields: HTTPFields = [
            .eTag: tag, .stateCursor: reading.cursor.description,
            .cacheControl: request.wait == nil ? "private, no-cache" : "no-store",
        ]
        if let seconds = request.wait?.applied { fields[.preferenceApplied] = "wait=\(seconds)" }
        let isAwaited = request.until.map { !WatchCondition.equalTo($0).isMet(by: encoded) }
        if isAwaited ?? request.known?.contains(encoded.tag) ?? false {
            return Response(status: .notModified, fields: fields)
        }
        fields[.contentType] = "application/json"
        fields[.xContentTypeOptions] = "nosniff"
        return Response(
            status: .ok, fields: fields,
            body: request.style == .pretty ? JSONText.indented(encoded.bytes) : encoded.bytes)
    }

    /// Says that the version that was waited for has not come.
    package func aheadOfLatest(_ request: ReadRequest, latest: Cursor) -> Response {
        response(to: Self.aheadOfLatest(latest), latest: latest, requestID: request.requestID)
    }
}
