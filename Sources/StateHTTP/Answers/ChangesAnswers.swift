internal import FoundationEssentials
package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    package func response(to request: ChangesRequest, _ page: ChangesPage) -> Response {
        if case .difference(let pointer) = request.form { return difference(request, at: pointer, page) }
        var writer = JSONWriter(capacity: 256 + page.commits.reduce(0) { $0 + $1.action.count + $1.patch.count + 160 })
        let epoch = page.latest.epoch
        writer.object { writer in
            writer.key("changes")
            writer.array(page.commits) { write($0, of: request.store, as: request.form, epoch: epoch, to: &$1) }
            writer.member("next", Cursor(epoch, page.next).description)
            writer.member("more", page.isMore)
            writer.member("head", page.latest.description)
        }
        return response(to: request, writer.bytes, page.latest)
    }

    private func response(to request: ChangesRequest, _ body: [UInt8], _ latest: Cursor) -> Response {
        applied(request.wait, request.coding, to: .json(.ok, body, style: request.style, latest: latest))
    }

    /// The answer to a lost or expired cursor: a problem, or with `on-lost=snapshot` the state, unless `state` throws.
    package func response(
        to request: ChangesRequest, lost code: ResetReason, bounds: HistoryBounds, state: () throws -> [UInt8]
    ) -> Response {
        // A state that cannot be encoded leaves the problem, which tells the client to read the state.
        guard request.onLost == .snapshot, let state = try? state() else {
            return response(
                to: lost(code, bounds, request.store), latest: bounds.latest, name: request.name,
                style: request.style)
        }
        var writer = JSONWriter(capacity: state.count + 128)
        reset(code.rawValue, state[...], next: bounds.latest, to: &writer)
        return response(to: request, writer.bytes, bounds.latest)
    }

    func reset(_ reason: String, _ state: ArraySlice<UInt8>, next: Cursor, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("reset", true)
            writer.member("reason", reason)
            writer.member("state", json: state)
            writer.member("next", next.description)
        }
    }

    package func response(
        toOutcomeOf id: String, _ commit: Commit?, _ store: VisibleStore, latest: Cursor, style: Style,
        name: RequestName
    ) -> Response {
        guard let commit, let finding = store.finding(id, commit) else {
            let other = Cursor(text: id).flatMap { $0.epoch == latest.epoch ? nil : $0.epoch.text }
            let problem = Problem(
                .notFound, "no-such-action",
                other.map {
                    "this ID is of the epoch \($0), and the history has the epoch \(latest.epoch.text), as after a restore: what was restored has IDs of the new epoch, and what was committed after the backup is gone"
                }
                    ?? "no commit with this ID is kept: it was never committed, or it is older than the history that is kept"
            )
            return response(to: problem, latest: latest, name: name, style: style)
        }
        let body = JSONWriter.object { writer in
            switch finding {
            case .commit: writeMembers(of: commit, of: store, as: .patches, epoch: latest.epoch, to: &writer)
            case .receipt:
                writer.member("cursor", Cursor(latest.epoch, commit.version).description)
                writer.member("version", commit.version)
                writer.member("id", commit.id)
            }
            writer.member("changed", commit.isChange)
            if commit.types == [StoreRefused.type], let refused = StoreRefused(recordedIn: commit) {
                writer.key("refused")
                writer.object {
                    $0.member("code", refused.code)
                    $0.member("detail", refused.detail)
                }
            }
        }
        return .json(.ok, body, style: style, latest: latest)
    }

    func applied(_ wait: Wait?, _ coding: ContentCoding?, to response: Response) -> Response {
        var response = response
        if let seconds = wait?.applied { response.fields[.preferenceApplied] = "wait=\(seconds)" }
        return compressed(response, coding)
    }

    private func difference(_ request: ChangesRequest, at pointer: JSONPointer, _ page: ChangesPage) -> Response {
        var difference = KeyedDifference(catalogue.collections, seen: request.store.access.parts)
        // The store has encoded every recorded patch, so the patch parses.
        for commit in page.commits { try? difference.add(patch: commit.patch) }
        let body = JSONWriter.object { writer in
            writer.key("collections")
            difference.write(at: pointer, of: request.store.scope, to: &writer)
            writer.member("next", Cursor(page.latest.epoch, page.next).description)
            writer.member("more", page.isMore)
        }
        return response(to: request, body, page.latest)
    }

    /// The keyed difference that lists all entities below a pointer as `initial`, for a client without a usable cursor.
    package func initialDifference(to request: ChangesRequest, in snapshot: Snapshot) throws -> Response {
        guard case .difference(let pointer) = request.form else {
            return response(to: .ourFault, latest: snapshot.cursor, name: request.name)
        }
        guard try snapshot.encoded(request.store.selection(pointer)) != nil || request.since != .never else {
            return response(
                to: Self.nothing(at: request.store.selection(pointer), request.store), latest: snapshot.cursor,
                name: request.name, style: request.style)
        }
        var writer = JSONWriter()
        try writer.object { writer in
            writer.key("collections")
            try writer.object { writer in
                for collection in catalogue.collections
                where collection.entities.overlaps(pointer) && request.store.access.sees(pointer) {
                    guard let inner = request.store.inner(collection.entities),
                        var ids = try snapshot.selected(.pointer(collection.ids), countMax: .max).bytes
                    else { continue }
                    if let token = pointer.tokens.dropFirst(collection.entities.tokens.count).first {
                        let entity = collection.entities.appending(token)
                        let isThere = try snapshot.encoded(.pointer(entity)) != nil
                        ids = [UInt8(ascii: "[")] + (isThere ? collection.id(token) : []) + [UInt8(ascii: "]")]
                    }
                    writer.key(escaping: inner.description)
                    writer.object { $0.member("initial", json: ids) }
                }
            }
            writer.member("next", snapshot.cursor.description)
            writer.member("more", false)
        }
        return response(to: request, writer.bytes, snapshot.cursor)
    }

    func write(
        _ commit: Commit, of store: VisibleStore, as form: ChangesRequest.Form, epoch: Epoch,
        to writer: inout JSONWriter
    ) {
        writer.object { writeMembers(of: commit, of: store, as: form, epoch: epoch, to: &$0) }
    }

    private func writeMembers(
        of commit: Commit, of store: VisibleStore, as form: ChangesRequest.Form, epoch: Epoch,
        to writer: inout JSONWriter
    ) {
        let visible = store.visible(commit, epoch: epoch)
        writer.member("version", commit.version)
        writer.member("cursor", Cursor(epoch, commit.version).description)
        writer.member("time", Self.text(commit.time))
        writer.member("id", visible.id)
        writer.member("cause", visible.cause)
        writer.member("root", visible.root)
        writer.member("by", visible.by)
        writer.member("traceparent", visible.trace)
        writer.member("action", json: visible.action)
        if form == .patches {
            writer.member("patch", json: visible.patch)
        } else {
            var difference = KeyedDifference(catalogue.collections, seen: store.access.parts)
            // The store has encoded every recorded patch, so the patch parses.
            try? difference.add(patch: commit.patch)
            writer.key("keyed")
            difference.write(at: store.pointer, of: store.scope, to: &writer)
        }
    }

    static func text(_ time: Timestamp) -> String { RFC3339.text(milliseconds: time.milliseconds) }
}
