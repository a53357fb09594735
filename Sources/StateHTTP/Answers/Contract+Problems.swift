package import HTTPMessages
internal import HTTPTypes
internal import Queries
internal import StateJSON
package import StateStore

extension Problem.Member {
    static func string(_ name: String, _ value: String) -> Problem.Member {
        var writer = JSONWriter()
        writer.string(value)
        return Problem.Member(name, writer.bytes)
    }
}

extension Contract {
    func lost(_ code: String, _ bounds: HistoryBounds, _ store: VisibleStore) -> Problem {
        let reason =
            code == "cursor-lost"
            ? "the cursor is not of this store's history: it has another epoch or is above the latest version"
            : "the changes after the cursor are no longer kept"
        return Problem(
            .gone, code, "\(reason); read \(store.path)/state and go on from its State-Cursor",
            members: [
                .string("epoch", bounds.latest.epoch.text),
                .string("oldest", Cursor(bounds.latest.epoch, bounds.oldest).description),
                .string("head", bounds.latest.description),
            ], fields: [.link: "<\(store.path)/state>; rel=\"resync\""])
    }

    static func aheadOfLatest(_ latest: Cursor, hint: String = "") -> Problem {
        Problem(
            .conflict, "ahead-of-head",
            "the store has not reached this version: the latest is \(latest.version)\(hint)",
            members: [.string("head", latest.description)])
    }

    static func nothing(at selection: Selection, _ store: VisibleStore, hints: Bool = true) -> Problem {
        let hint = hints ? "; ?wait=25&until-exists waits for a value" : ""
        switch selection {
        case .pointer(let pointer), .hidden(let pointer):
            let text = (store.inner(pointer) ?? pointer).description
            let place = "the state" + (text.isEmpty ? "" : " at \(text)")
            let visible = (store.access.parts(of: pointer) ?? []).prefix(10).compactMap { store.inner($0)?.description }
            return Problem(
                .notFound, "no-such-path",
                visible.isEmpty
                    ? "there is nothing in \(place)\(hint)"
                    : "this credential may not see all of \(place), only \(visible.joined(separator: ", "))",
                members: [.string("pointer", text)])
        case .view(let name, _):
            return Problem(
                .notFound, "no-such-view",
                "the view \(name.dropFirst(store.isWhole ? 0 : store.name.count + 1)) has no value\(hint)")
        case .query(_, of: let base): return nothing(at: base, store, hints: hints)
        }
    }
}

extension Problem {
    /// The watch hub has no room for another watch, in all or for this client.
    package static func tooManyWaiters(_ share: WatchRefusal) -> Problem {
        switch share {
        case .all:
            Problem(
                .serviceUnavailable, "too-many-waiters",
                "too many requests wait at this server; ask without wait, or try again later",
                fields: [.retryAfter: "5"])
        case .client:
            Problem(
                .tooManyRequests, "too-many-waiters",
                "too many requests of this client wait; ask without wait, or try again later",
                fields: [.retryAfter: "5"])
        case .views:
            Problem(
                .serviceUnavailable, "too-many-views",
                "clients wait for too many different views with parameters or a subject; ask without wait, or try again later",
                fields: [.retryAfter: "5"])
        case .queries:
            Problem(
                .serviceUnavailable, "too-many-queries",
                "clients watch too many different queries; ask without wait, or try again later",
                fields: [.retryAfter: "5"])
        case .memory(.client): tooManyBytes
        case .memory(.all): memoryExhausted
        }
    }

    /// The problem of a query that has no answer, or nil for another error.
    package static func of(query error: any Error) -> Problem? {
        switch error {
        case is NoMembers:
            Problem(
                .badRequest, "invalid-query",
                "the value has no members to query: it is neither an object nor an array")
        case let fault as MemberQuery.Fault: invalid(fault.parameter, at: fault.offset, fault.detail)
        case let stop as QueryStop:
            switch stop {
            case .values: tooCostly("looks at more than \(MemberQuery.stepsMax) values, or gathers too many of them")
            case .time: tooCostly("takes more than \(MemberQuery.timeMax.components.seconds) s of processor time")
            case .page: tooCostly("fills a page, and its sort values are too long for a next")
            case .abandoned, .elsewhere:
                Problem(.serviceUnavailable, "hung-up", "the client has closed its side, and its query takes long")
            case .memory(let refusal): tooManyWaiters(.memory(refusal))
            }
        default: nil
        }
    }

    private static func tooCostly(_ detail: String) -> Problem {
        Problem(
            .unprocessableContent, "query-too-costly",
            "the query \(detail); ask for a smaller part of the state, for less of each member, or use fewer .. and nested filters"
        )
    }

    static func invalid(_ parameter: String, at offset: Int, _ detail: String) -> Problem {
        Problem(
            .badRequest, "invalid-query", "\(parameter), character \(offset + 1): \(detail)",
            members: [.string("parameter", parameter), .init("offset", Array(String(offset).utf8))])
    }

    /// The client occupies its share of the memory.
    package static var tooManyBytes: Problem {
        Problem(
            .tooManyRequests, "too-many-bytes",
            "the requests of this client occupy its whole share of the server's memory",
            fields: [.retryAfter: "1"])
    }

    /// The client of a bulk load has gone before a line had its turn.
    static var hungUp: Problem {
        Problem(
            .serviceUnavailable, "hung-up",
            "the client had closed its side of the connection before this line had its turn; nothing of it was committed"
        )
    }

    /// The server is stopping.
    package static var draining: Problem {
        Problem(
            .serviceUnavailable, "draining", "the server is stopping and takes no more actions; nothing was committed",
            fields: [.retryAfter: "1"])
    }

    /// Another server of the history has given the client a version that this one does not have yet.
    package static func behind(_ latest: Cursor) -> Problem {
        Problem(
            .serviceUnavailable, "behind",
            "this server is at version \(latest.version) and does not have the cursor's yet; ask again, or another server of the cluster",
            members: [.string("head", latest.description)], fields: [.retryAfter: "1"])
    }

    /// The clients occupy as much memory as they may.
    package static var memoryExhausted: Problem {
        Problem(
            .serviceUnavailable, "memory-exhausted",
            "requests and unread answers occupy all the memory that this server gives them; try again in a moment",
            fields: [.retryAfter: "1"])
    }

    /// Too many slow reads are under way, in all or for one client.
    package static func tooManyReads(_ share: WatchRefusal) -> Problem {
        switch share {
        case .all, .views, .queries, .memory:
            Problem(
                .serviceUnavailable, "too-many-reads",
                "too many requests for large, past or old parts are under way; try again in a moment",
                fields: [.retryAfter: "1"])
        case .client:
            Problem(
                .tooManyRequests, "too-many-reads",
                "too many requests of this client for large, past or old parts are under way",
                fields: [.retryAfter: "1"])
        }
    }

    /// The journal does not record.
    package static var notDurable: Problem {
        Problem(
            .serviceUnavailable, "not-durable",
            "the journal could not record the action; nothing was committed and the state is as it was",
            fields: [.retryAfter: "1"])
    }

    /// The journal failed while it recorded, and cannot say whether a commit is in it.
    ///
    /// - Parameter id: the ID that the client gave to the action.
    package static func outcomeUnknown(id: String?) -> Problem {
        Problem(
            .serviceUnavailable, "outcome-unknown",
            "the journal, or the server that carried the action out, failed meanwhile, and whether it is committed is not known yet; send it again only with its Idempotency-Key, or ask for its id for as long as the answer is outcome-unknown",
            members: id.map { [.string("id", $0)] } ?? [], fields: [.retryAfter: "1"])
    }

    /// The journal has not the commits that a request asks for as they were recorded.
    ///
    /// The log of the server names version and file.
    package static var journalDamaged: Problem {
        Problem(
            .internalServerError, "journal-damaged",
            "the journal lacks commits that this request asks for, or they are damaged; the log of the server names them; the latest state is not affected"
        )
    }

    /// The etcd that has the history does not answer.
    package static var historyUnreachable: Problem {
        Problem(
            .serviceUnavailable, "history-unreachable",
            "the etcd that has the older commits does not answer; the latest state can be read; try again in a moment",
            fields: [.retryAfter: "1"])
    }

    /// There is nothing to back up.
    package static var noJournal: Problem {
        Problem(
            .notFound, "no-journal",
            "this server keeps its state in memory only, or in etcd without a cluster_directory in which to make a copy"
        )
    }

    /// There is one backup at a time.
    package static var backupUnderWay: Problem {
        Problem(
            .serviceUnavailable, "backup-under-way", "another client gets a backup at the moment; try again later",
            fields: [.retryAfter: "10"])
    }

    /// The copy would fill the disk, and the journal could not go on.
    package static var noRoomForBackup: Problem {
        Problem(
            HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"), "no-room-for-backup",
            "the disk of this server has too little room for a copy of the journal; storekeeper journal backup can write to another disk"
        )
    }

    /// The server no longer keeps the state of a version.
    ///
    /// - Parameter oldest: the oldest version that a client can read.
    package static func versionGone(oldest: Version) -> Problem {
        Problem(
            .gone, "version-expired", "the state of that version is no longer kept; the oldest is \(oldest)",
            members: [.init("oldest", Array(String(oldest).utf8))])
    }

    /// The server failed.
    ///
    /// The caller logs the reason; the problem does not tell it.
    package static var ourFault: Problem {
        Problem(.internalServerError, "internal", "the server failed on this request; nothing was committed")
    }

    /// The answer to a read of a view whose function fails.
    package static func viewFault(_ fault: ViewFault) -> Problem {
        Problem(.internalServerError, "view-fault", "the view has no value: \(fault.sentence)")
    }

    /// The answer of a probe where the domain can take no action.
    package static func domainFailed(_ failure: DomainFailure) -> Problem {
        Problem(.serviceUnavailable, failure.code, failure.detail)
    }

    /// The body is larger than the limit.
    package static func tooLarge(limit: Int) -> Problem {
        Problem(
            .contentTooLarge, "body-too-large", "the body is larger than the \(limit) bytes that this server takes",
            members: [.init("limit", Array(String(limit).utf8))])
    }
}
