internal import StateJSON
internal import StateStore

extension Contract {
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
