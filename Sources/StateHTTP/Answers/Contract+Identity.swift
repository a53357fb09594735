internal import StateJSON
internal import StateStore

extension Contract {
    func identity(_ bounds: HistoryBounds, _ store: VisibleStore) -> [UInt8] {
        var writer = JSONWriter()
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.member("epoch", bounds.latest.epoch.text, &isFirst)
        writer.key("version", &isFirst)
        writer.integer(bounds.latest.version)
        writer.member("cursor", bounds.latest.description, &isFirst)
        writer.member("oldest", Cursor(bounds.latest.epoch, bounds.oldest).description, &isFirst)
        if store.isWhole, let name = limits.name { writer.member("name", name, &isFirst) }
        if store.isWhole, limits.pageConfirms {
            writer.key("page_confirm", &isFirst)
            writer.raw("true")
        }
        writer.key("limits", &isFirst)
        var isFirstLimit = true
        writer.byte(UInt8(ascii: "{"))
        for (name, value) in [
            ("body_bytes_max", limits.bodyBytesMax), ("depth_max", limits.depthMax),
            ("wait_seconds_default", Int(limits.waitDefault.components.seconds)),
            ("wait_seconds_max", Int(limits.waitMax.components.seconds)),
            ("changes_limit_default", limits.changesLimitDefault), ("changes_limit_max", limits.changesLimitMax),
            ("query_limit_max", limits.queryLimitMax),
            ("batch_actions_max", limits.batchActionsMax), ("bulk_lines_max", limits.bulkLinesMax),
            ("bulk_faults_max", limits.bulkFaultsMax),
            ("expectations_max", limits.expectationsMax),
            ("idempotency_seconds", Int(limits.idempotencyLifetime.components.seconds)),
        ] + limits.transport {
            writer.separator(&isFirstLimit)
            writer.string(name)
            writer.byte(UInt8(ascii: ":"))
            writer.integer(value)
        }
        writer.raw("},\"links\":{")
        var isFirstLink = true
        var links = ["state", "views", "actions", "changes?since=\(bounds.latest)", "streams", "openapi.json"]
        if store.isWhole { links.insert("stores", at: 3) }
        for link in links {
            writer.separator(&isFirstLink)
            writer.string(String(link.prefix { $0.isLetter }))
            writer.byte(UInt8(ascii: ":"))
            writer.string("\(store.path)/\(link)")
        }
        if store.isWhole {
            writer.member("client", "/v1/client.js", &isFirstLink)
            if limits.hasPage { writer.member("page", "/", &isFirstLink) }
        }
        writer.raw("}}")
        return writer.bytes
    }

    static func description(of access: Access) -> [UInt8] {
        JSONValue.of(
            ("subject", access.subject.map { .string($0) } ?? .null), ("grant", access.grant.json),
            ("expires", access.expiry.map { .string(text($0)) } ?? .null)
        ).text
    }
}
