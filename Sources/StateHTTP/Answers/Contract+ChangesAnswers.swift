internal import FoundationEssentials
package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    /// The answer to a GET of commits: the commits of a page, and the cursor to ask from next.
    package func response(to request: ChangesRequest, _ page: ChangesPage) -> Response {
        if case .difference(let pointer) = request.form { return difference(request, at: pointer, page) }
        var writer = JSONWriter(capacity: 256 + page.commits.reduce(0) { $0 + $1.action.count + $1.patch.count + 160 })
        let epoch = page.latest.epoch
        writer.raw("{\"changes\":[")
        var isFirst = true
        for commit in page.commits {
            writer.separator(&isFirst)
            write(commit, of: request.store, as: request.form, epoch: epoch, to: &writer)
        }
        writer.raw("],\"next\":")
        writer.string(Cursor(epoch, page.next).description)
        writer.raw(",\"more\":")
        writer.bool(page.isMore)
        writer.raw(",\"head\":")
        writer.string(page.latest.description)
        writer.byte(UInt8(ascii: "}"))
        return compressed(
            applied(.json(.ok, writer.bytes, style: request.style, latest: page.latest), request.wait), request.coding)
    }

    /// The answer to a lost or expired cursor: a problem, or with `on-lost=snapshot` the state.
    ///
    /// - Parameter state: encodes the state of the addressed store at the latest version; where it throws, the answer is the
    ///   problem.
    package func response(
        to request: ChangesRequest, lost code: LostCursor, bounds: HistoryBounds, state: () throws -> [UInt8]
    ) -> Response {
        // A state that cannot be encoded leaves the problem, which tells the client to read the state.
        guard request.onLost == .snapshot, let state = try? state() else {
            return response(
                to: lost(code.rawValue, bounds, request.store), latest: bounds.latest, requestID: request.requestID,
                style: request.style)
        }
        var writer = JSONWriter(capacity: state.count + 128)
        writer.raw("{\"reset\":true,\"reason\":")
        writer.string(code.rawValue)
        writer.raw(",\"state\":")
        writer.raw(state)
        writer.raw(",\"next\":")
        writer.string(bounds.latest.description)
        writer.byte(UInt8(ascii: "}"))
        return compressed(
            applied(.json(.ok, writer.bytes, style: request.style, latest: bounds.latest), request.wait), request.coding
        )
    }

    /// The answer to a GET of the outcome of an action: the commit, or 404.
    package func response(
        toOutcomeOf id: String, _ commit: Commit?, _ store: VisibleStore, latest: Cursor, style: Style,
        requestID: RequestID
    ) -> Response {
        guard let commit, let finding = store.finding(id, commit) else {
            let other = Cursor(text: id).flatMap { $0.epoch == latest.epoch ? nil : $0.epoch }
            let problem = Problem(
                .notFound, "no-such-action",
                other.map {
                    "this ID is of the epoch \($0.text), and the history has the epoch \(latest.epoch.text), as after a restore: what was restored has IDs of the new epoch, and what was committed after the backup is gone"
                }
                    ?? "no commit with this ID is kept: it was never committed, or it is older than the history that is kept"
            )
            return response(to: problem, latest: latest, requestID: requestID, style: style)
        }
        var writer = JSONWriter()
        switch finding {
        case .commit:
            write(commit, of: store, as: .patches, epoch: latest.epoch, to: &writer)
            writer.bytes.removeLast()
        case .receipt:
            var isFirst = true
            writer.byte(UInt8(ascii: "{"))
            writer.member("cursor", Cursor(latest.epoch, commit.version).description, &isFirst)
            writer.key("version", &isFirst)
            writer.integer(commit.version)
            writer.member("id", commit.id, &isFirst)
        }
        writer.raw(",\"changed\":")
        writer.bool(commit.isChange)
        if commit.types == [StoreRefused.type], let refused = StoreRefused(recordedIn: commit) {
            var isFirst = true
            writer.raw(",\"refused\":{")
            writer.member("code", refused.code, &isFirst)
            writer.member("detail", refused.detail, &isFirst)
            writer.byte(UInt8(ascii: "}"))
        }
        writer.byte(UInt8(ascii: "}"))
        return .json(.ok, writer.bytes, style: style, latest: latest)
    }

    private func applied(_ response: Response, _ wait: Wait?) -> Response {
        guard let seconds = wait?.applied else { return response }
        var response = response
        response.fields[.preferenceApplied] = "wait=\(seconds)"
        return response
    }

    private func difference(_ request: ChangesRequest, at pointer: JSONPointer, _ page: ChangesPage) -> Response {
        var difference = KeyedDifference(catalogue.collections, seen: request.store.access.parts)
        // The store has encoded every recorded patch, so the patch parses.
        for commit in page.commits { try? difference.add(patch: commit.patch) }
        var writer = JSONWriter()
        writer.raw("{\"collections\":")
        difference.write(at: pointer, of: request.store.scope, to: &writer)
        return differed(request, writer, next: Cursor(page.latest.epoch, page.next), isMore: page.isMore, page.latest)
    }

    /// The keyed difference that lists all entities below a pointer as `initial`: for a client without a cursor, or with
    /// a lost or expired one.
    ///
    /// - Throws: `EncodingError`, never for a committed state.
    package func initialDifference(to request: ChangesRequest, in snapshot: Snapshot) throws -> Response {
        guard case .difference(let pointer) = request.form else {
            return response(to: .ourFault, latest: snapshot.cursor, requestID: request.requestID)
        }
        guard try snapshot.encoded(request.store.selection(pointer)) != nil || request.since != .never else {
            return response(
                to: Self.nothing(at: request.store.selection(pointer), request.store), latest: snapshot.cursor,
                requestID: request.requestID, style: request.style)
        }
        var writer = JSONWriter()
        writer.raw("{\"collections\":{")
        var isFirst = true
        for collection in catalogue.collections
        where collection.entities.overlaps(pointer) && request.store.access.sees(pointer) {
            guard let inner = request.store.inner(collection.entities),
                var ids = try snapshot.selected(.pointer(collection.ids), countMax: .max).bytes
            else { continue }
            // A pointer into a table selects one entity.
            if let token = pointer.tokens.dropFirst(collection.entities.tokens.count).first {
                let entity = collection.entities.appending(token)
                let isThere = try snapshot.encoded(.pointer(entity)) != nil
                ids = [UInt8(ascii: "[")] + (isThere ? collection.id(token) : []) + [UInt8(ascii: "]")]
            }
            writer.separator(&isFirst)
            writer.string(inner.description)
            writer.raw(":{\"initial\":")
            writer.raw(ids)
            writer.byte(UInt8(ascii: "}"))
        }
        writer.byte(UInt8(ascii: "}"))
        return differed(request, writer, next: snapshot.cursor, isMore: false, snapshot.cursor)
    }

    private func differed(
        _ request: ChangesRequest, _ writer: JSONWriter, next: Cursor, isMore: Bool, _ latest: Cursor
    ) -> Response {
        var writer = writer
        writer.raw(",\"next\":")
        writer.string(next.description)
        writer.raw(",\"more\":")
        writer.bool(isMore)
        writer.byte(UInt8(ascii: "}"))
        return compressed(
            applied(.json(.ok, writer.bytes, style: request.style, latest: latest), request.wait), request.coding)
    }

    func write(
        _ commit: Commit, of store: VisibleStore, as form: ChangesRequest.Form, epoch: Epoch,
        to writer: inout JSONWriter
    ) {
        let visible = store.visible(commit, epoch: epoch)
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.key("version", &isFirst)
        writer.integer(commit.version)
        writer.member("cursor", Cursor(epoch, commit.version).description, &isFirst)
        writer.member("time", Self.text(commit.time), &isFirst)
        writer.member("id", visible.id, &isFirst)
        writer.member("cause", visible.cause, &isFirst)
        writer.member("root", visible.root, &isFirst)
        writer.member("by", visible.by, &isFirst)
        writer.member("traceparent", visible.trace, &isFirst)
        writer.key("action", &isFirst)
        writer.raw(visible.action)
        if form == .patches {
            writer.key("patch", &isFirst)
            writer.raw(visible.patch)
        } else {
            var difference = KeyedDifference(catalogue.collections, seen: store.access.parts)
            // The store has encoded every recorded patch, so the patch parses.
            try? difference.add(patch: commit.patch)
            writer.key("keyed", &isFirst)
            difference.write(at: store.pointer, of: store.scope, to: &writer)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    static func text(_ time: Timestamp) -> String {
        RFC3339.text(milliseconds: time.milliseconds)
    }
}

/// Why the server cannot answer from a cursor.
package enum LostCursor: String, Sendable {
    /// The cursor has another epoch, or is above the latest version.
    case lost = "cursor-lost"
    /// The server no longer keeps the commits after the cursor.
    case expired = "cursor-expired"
}
