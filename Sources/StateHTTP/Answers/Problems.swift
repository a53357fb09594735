package import HTTPMessages
internal import HTTPTypes
internal import Queries
internal import StateJSON
package import StateStore

extension Problem.Member {
    static func string(_ name: String, _ value: String) -> Problem.Member {
        Problem.Member(name, JSONValue.string(value).text)
    }

    static func number(_ name: String, _ value: some FixedWidthInteger) -> Problem.Member {
        Problem.Member(name, Array(String(value).utf8))
    }
}

extension Contract {
    func lost(_ code: ResetReason, _ bounds: HistoryBounds, _ store: VisibleStore) -> Problem {
        let reason =
            code == .lost
            ? "the cursor is not of this store's history: it has another epoch or is above the latest version"
            : "the changes after the cursor are no longer kept"
        return Problem(
            .gone, code.rawValue, "\(reason); read \(store.path)/state and go on from its State-Cursor",
            members: [
                .string("epoch", bounds.latest.epoch.text),
                .string("oldest", Cursor(bounds.latest.epoch, bounds.oldest).description),
                .string("head", bounds.latest.description),
            ], fields: [.link: "<\(store.path)/state>; rel=\"resync\""])
    }

    package static func aheadOfLatest(_ latest: Cursor, hint: String = "") -> Problem {
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
    static func badParameter(_ detail: String) -> Problem { Problem(.badRequest, "bad-parameter", detail) }
    static func badPointer(_ detail: String) -> Problem { Problem(.badRequest, "bad-pointer", detail) }

    package static func tooManyWaiters(_ share: WatchRefusal) -> Problem {
        switch share {
        case .all:
            busy(
                "too-many-waiters", after: 5,
                "too many requests wait at this server; ask without wait, or try again later")
        case .client:
            tooMany(
                "too-many-waiters", after: 5,
                "too many requests of this client wait; ask without wait, or try again later")
        case .views:
            busy(
                "too-many-views", after: 5,
                "clients wait for too many different views with parameters or a subject; ask without wait, or try again later"
            )
        case .queries:
            busy(
                "too-many-queries", after: 5,
                "clients watch too many different queries; ask without wait, or try again later")
        case .memory(.client): tooManyBytes
        case .memory(.all): memoryExhausted
        }
    }

    package static func tooManyReads(_ share: WatchRefusal) -> Problem {
        switch share {
        case .all, .views, .queries, .memory:
            busy(
                "too-many-reads", "too many requests for large, past or old parts are under way; try again in a moment")
        case .client:
            tooMany("too-many-reads", "too many requests of this client for large, past or old parts are under way")
        }
    }

    static func full(_ resource: Outcome.Resource) -> Problem {
        switch resource {
        case .mailbox:
            busy("mailbox-full", "too many actions wait at this server; nothing was committed; try again in a moment")
        case .idempotencyKeys:
            busy(
                "idempotency-keys-full", after: 60,
                "this server remembers as many idempotency keys as it can; nothing was committed")
        case .idempotencyKeysOfClient:
            tooMany(
                "idempotency-keys-full", after: 60,
                "this server remembers too many idempotency keys of this client; nothing was committed")
        }
    }

    static let keyReused = Problem(
        .unprocessableContent, "idempotency-key-reused",
        "this Idempotency-Key was used with another body; a retry must send the same body, a new command needs a new key"
    )

    package static func of(query error: any Error) -> Problem? {
        switch error {
        case is NoMembers:
            Problem(
                .badRequest, "invalid-query", "the value has no members to query: it is neither an object nor an array")
        case let fault as MemberQuery.Fault: invalid(fault)
        case QueryStop.values:
            tooCostly("looks at more than \(MemberQuery.stepsMax) values, or gathers too many of them")
        case QueryStop.time: tooCostly("takes more than \(MemberQuery.timeMax.components.seconds) s of processor time")
        case QueryStop.page: tooCostly("fills a page, and its sort values are too long for a next")
        case QueryStop.abandoned, QueryStop.elsewhere:
            Problem(.serviceUnavailable, "hung-up", "the client has closed its side, and its query takes long")
        case QueryStop.memory(let refusal): tooManyWaiters(.memory(refusal))
        default: nil
        }
    }

    private static func tooCostly(_ detail: String) -> Problem {
        Problem(
            .unprocessableContent, "query-too-costly",
            "the query \(detail); ask for a smaller part of the state, for less of each member, or use fewer .. and nested filters"
        )
    }

    static func invalid(_ fault: MemberQuery.Fault) -> Problem {
        Problem(
            .badRequest, "invalid-query", "\(fault.parameter), character \(fault.offset + 1): \(fault.detail)",
            members: [.string("parameter", fault.parameter), .number("offset", fault.offset)])
    }

    static let hungUp = Problem(
        .serviceUnavailable, "hung-up",
        "the client had closed its side of the connection before this line had its turn; nothing of it was committed")

    package static let draining = busy(
        "draining", "the server is stopping and takes no more actions; nothing was committed")

    package static func behind(_ latest: Cursor) -> Problem {
        var problem = busy(
            "behind",
            "this server is at version \(latest.version) and does not have the cursor's yet; ask again, or another server of the cluster"
        )
        problem.members = [.string("head", latest.description)]
        return problem
    }

    package static let notDurable = busy(
        "not-durable", "the journal could not record the action; nothing was committed and the state is as it was")

    package static func outcomeUnknown(id: String?) -> Problem {
        var problem = busy(
            "outcome-unknown",
            "the journal, or the server that carried the action out, failed meanwhile, and whether it is committed is not known yet; send it again only with its Idempotency-Key, or ask for its id for as long as the answer is outcome-unknown"
        )
        problem.members = id.map { [.string("id", $0)] } ?? []
        return problem
    }

    /// The journal has not the commits as they were recorded; the log of the server names version and file.
    package static let journalDamaged = Problem(
        .internalServerError, "journal-damaged",
        "the journal lacks commits that this request asks for, or they are damaged; the log of the server names them; the latest state is not affected"
    )

    package static let historyUnreachable = busy(
        "history-unreachable",
        "the etcd that has the older commits does not answer; the latest state can be read; try again in a moment")

    package static let noJournal = Problem(
        .notFound, "no-journal",
        "this server keeps its state in memory only, or in etcd without a cluster_directory in which to make a copy")

    package static let backupUnderWay = busy(
        "backup-under-way", after: 10, "another client gets a backup at the moment; try again later")

    package static let noRoomForBackup = Problem(
        HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"), "no-room-for-backup",
        "the disk of this server has too little room for a copy of the journal; storekeeper journal backup can write to another disk"
    )

    package static func versionGone(oldest: Version) -> Problem {
        Problem(
            .gone, "version-expired", "the state of that version is no longer kept; the oldest is \(oldest)",
            members: [.number("oldest", oldest)])
    }

    /// The caller logs the reason; the problem does not tell it.
    package static let ourFault = Problem(
        .internalServerError, "internal", "the server failed on this request; nothing was committed")

    package static func viewFault(_ fault: ViewFault) -> Problem {
        Problem(.internalServerError, "view-fault", "the view has no value: \(fault.sentence)")
    }

    package static func domainFailed(_ failure: DomainFailure) -> Problem {
        Problem(.serviceUnavailable, failure.code, failure.detail)
    }

    static let notScheduled = Problem(
        .notFound, "not-scheduled",
        "this client has scheduled no action under this name, or it has been dispatched or taken back")

    package static let offsetGone = Problem(
        .gone, "offset-gone",
        "the offset is of another history, or what follows it is no longer kept; begin again with offset=-1, and forget what is known"
    )

    static func unreadable(_ fault: JSONFault) -> Problem {
        let code =
            switch fault.kind {
            case .duplicateKey: "duplicate-key"
            case .tooDeep: "too-deep"
            case .numberOutOfRange: "number-out-of-range"
            case .malformed, .mismatch, .schema: "malformed-json"
            }
        return Problem(
            .badRequest, code, "the body cannot be read as JSON: \(fault.detail)",
            parts: [(fault.pointer.description, fault.detail)])
    }
}
