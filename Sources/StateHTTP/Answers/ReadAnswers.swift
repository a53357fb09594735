package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    private static let revalidated = HTTPField(name: .cacheControl, value: "private, no-cache")
    private static let notStored = HTTPField(name: .cacheControl, value: "no-store")
    private static let fieldsOfContent = [
        HTTPField(name: .contentType, value: "application/json"),
        HTTPField(name: .xContentTypeOptions, value: "nosniff"),
        HTTPField(name: .crossOriginResourcePolicy, value: "same-origin"),
    ]

    /// Nearly all answers to a GET of a selection differ only in these fields.
    private static let template = ResponseTemplate(
        [.varying(.eTag), .varying(.stateCursor), .fixed(revalidated)] + fieldsOfContent.map { .fixed($0) })

    package func response(to request: ReadRequest, _ reading: Reading) -> Response {
        guard let encoded = reading.encoded else {
            return response(
                to: Self.nothing(
                    at: request.selection, request.store, hints: request.version == nil && !request.untilExists),
                latest: reading.cursor, name: request.name, style: request.style)
        }
        if let keyed = request.keyed { return keyedResponse(to: request, keyed, reading, encoded) }
        let coding = isCompressed(request, encoded) ? request.coding : nil
        if request.style == .compact, coding == nil, request.wait == nil, request.known == nil {
            return Response(
                Self.template, ShortText(quoting: encoded.tag), ShortText(reading.cursor), body: encoded.body)
        }
        // The tag hashes the compact bytes, so for indented bytes it is weak.
        let tag = request.style == .pretty ? "W/\"\(encoded.tag)\"" : "\"\(encoded.tag)\(coding?.tagSuffix ?? "")\""
        var fields = [
            HTTPField(name: .eTag, value: tag), HTTPField(name: .stateCursor, value: reading.cursor.description),
            request.wait == nil ? Self.revalidated : Self.notStored,
        ]
        fields.reserveCapacity(8)
        if coding != nil { fields.append(HTTPField(name: .vary, value: "Accept-Encoding")) }
        if request.wait != nil, request.condition == nil, request.atLeast == nil {
            let reason = "none; a wait needs If-None-Match with the ETag, until, until-exists or at-least"
            fields.append(HTTPField(name: .stateWait, value: reason))
        } else if let seconds = request.wait?.applied {
            fields.append(HTTPField(name: .preferenceApplied, value: "wait=\(seconds)"))
        }
        let isStillAwaited = request.until.map { !WatchCondition.equalTo($0.value).isMet(by: encoded) }
        if isStillAwaited ?? request.known?.contains(encoded.tag) ?? false {
            return Response(status: .notModified, fields: HTTPFields(fields))
        }
        fields += Self.fieldsOfContent
        if let coding {
            fields.append(HTTPField(name: .contentEncoding, value: coding.rawValue))
            // Without memory for the coding the answer has no memory either.
            let body = encoded.form(coding.rawValue) { coding.compressed($0) ?? [] }
            return Response(status: .ok, fields: HTTPFields(fields), body: body)
        }
        return Response(
            status: .ok, fields: HTTPFields(fields), body: request.style == .pretty ? encoded.indented() : encoded.body)
    }

    // A compressed value has a tag of its own, and a condition takes any of a value's tags: they name the same content.

    package func coding(of request: Request) -> ContentCoding? {
        guard limits.compressedBytesMin > 0, let field = request[.acceptEncoding] else { return nil }
        return .preferred(field)
    }

    func isCompressed(_ request: ReadRequest, _ encoded: Encoded) -> Bool {
        request.coding != nil && request.style == .compact && encoded.json.count >= limits.compressedBytesMin
    }

    package func mustCompress(_ request: ReadRequest, _ reading: Reading) -> Bool {
        guard let encoded = reading.encoded, let coding = request.coding, isCompressed(request, encoded) else {
            return false
        }
        return !encoded.has(coding.rawValue)
    }

    func compressed(_ response: Response, _ coding: ContentCoding?) -> Response {
        guard let coding, response.body.count >= limits.compressedBytesMin, let body = coding.compressed(response.body)
        else { return response }
        var response = response
        response.body = body
        response.fields[.contentEncoding] = coding.rawValue
        response.fields.vary(by: "Accept-Encoding")
        return response
    }

    func identity(_ bounds: HistoryBounds, _ store: VisibleStore) -> [UInt8] {
        let limits: [(name: String, value: Int)] = [
            ("body_bytes_max", limits.bodyBytesMax), ("depth_max", limits.depthMax),
            ("wait_seconds_default", Int(limits.waitDefault.components.seconds)),
            ("wait_seconds_max", Int(limits.waitMax.components.seconds)),
            ("changes_limit_default", limits.changesLimitDefault), ("changes_limit_max", limits.changesLimitMax),
            ("query_limit_max", limits.queryLimitMax), ("batch_actions_max", limits.batchActionsMax),
            ("bulk_lines_max", limits.bulkLinesMax), ("bulk_faults_max", limits.bulkFaultsMax),
            ("expectations_max", limits.expectationsMax),
            ("idempotency_seconds", Int(limits.idempotencyLifetime.components.seconds)),
        ]
        var links = ["state", "views", "actions", "changes?since=\(bounds.latest)", "streams", "openapi.json"]
        if store.isWhole { links.insert("stores", at: 3) }
        return JSONWriter.object { writer in
            writer.member("epoch", bounds.latest.epoch.text)
            writer.member("version", bounds.latest.version)
            writer.member("cursor", bounds.latest.description)
            writer.member("oldest", Cursor(bounds.latest.epoch, bounds.oldest).description)
            if store.isWhole { writer.member("name", self.limits.name) }
            if store.isWhole, self.limits.pageConfirms { writer.member("page_confirm", true) }
            writer.key("limits")
            writer.object { writer in
                for (name, value) in limits + self.limits.transport {
                    writer.key(escaping: name)
                    writer.integer(value)
                }
            }
            writer.key("links")
            writer.object { writer in
                for link in links {
                    writer.key(escaping: String(link.prefix { $0.isLetter }))
                    writer.string("\(store.path)/\(link)")
                }
                guard store.isWhole else { return }
                writer.member("client", "/v1/client.js")
                if self.limits.hasPage { writer.member("page", "/") }
            }
        }
    }

    static func description(of access: Access) -> [UInt8] {
        JSONValue.of(
            ("subject", access.subject.map { .string($0) } ?? .null), ("grant", access.grant.json),
            ("expires", access.expiry.map { .string(text($0)) } ?? .null)
        ).text
    }
}

extension HTTPFields {
    mutating func vary(by name: String) { self[.vary] = (self[values: .vary] + [name]).joined(separator: ", ") }
}
