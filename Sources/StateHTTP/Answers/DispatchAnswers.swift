package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    /// The answer to a POST of NDJSON; the outcomes are fewer than the lines where the client has hung up.
    package func response(
        to lines: [DispatchRequest.Line], outcomes: [Outcome], of request: DispatchRequest, latest: Cursor
    ) -> Response {
        var body: [UInt8] = []
        var problems: [String: Int] = [:]
        var rest = outcomes[...]
        for line in lines {
            let answer = line.content.flatMap { transaction in
                rest.popFirst().map { result(of: $0, transaction.form, request.options, epoch: latest.epoch) }
                    ?? .failure(.hungUp)
            }
            switch answer {
            case .success(let receipt): body += receipt
            case .failure(var problem):
                // An empty line gets no answer, so the client needs the number of the line.
                problem.members.append(.number("line", line.number))
                body += Self.document(problem, latest: nil, name: nil)
                problems[problem.code, default: 0] += 1
            }
            body.append(UInt8(ascii: "\n"))
        }
        // The answer ends with one line feed, too.
        _ = body.popLast()
        var response = Response.receipt(body, cursor: ShortText(latest), isForBrowser: request.options.isOfBrowser)
        response.fields[.contentType] = "application/x-ndjson"
        response.problems = problems
        // A replay has no representation, and of the others each must have had room for its own.
        let commits = outcomes.compactMap(\.receipt).filter { !$0.isReplay }
        if request.options.returning == .representation, !commits.isEmpty,
            commits.allSatisfy({ $0.representation != nil })
        {
            response.fields[.preferenceApplied] = "return=representation"
        }
        return response
    }

    package func response(
        to request: DispatchRequest, outcome: Outcome, cascade: CascadeReport? = nil, latest: @autoclosure () -> Cursor,
        name: @autoclosure () -> RequestName
    ) -> Response {
        let receipt = outcome.receipt
        // Nearly all answers are this one, and a response that can still change would be copied.
        if let receipt, !receipt.isReplay, request.options.returning == nil, cascade == nil {
            let cursor = ShortText(receipt.commitCursor)
            return .receipt(
                Self.json(receipt, cursor, request.options), style: request.style, cursor: cursor,
                isForBrowser: request.options.isOfBrowser)
        }
        let latest = latest()
        let body: [UInt8]
        let form = request.transaction?.form ?? .single
        switch result(of: outcome, form, request.options, cascade, epoch: latest.epoch) {
        case .success(let bytes): body = bytes
        case .failure(let problem):
            return response(to: problem, latest: latest, name: name(), style: request.style)
        }
        var response = Response.receipt(
            body, style: request.style, cursor: ShortText(receipt?.commitCursor ?? latest),
            isForBrowser: request.options.isOfBrowser)
        if receipt?.isReplay == true { response.fields[.idempotencyReplayed] = "true" }
        switch request.options.returning {
        case .minimal?:
            response.status = .noContent
            response.body = []
            response.fields[.contentType] = nil
            response.fields[.preferenceApplied] = "return=minimal"
        // A replay and a dry run have no representation.
        case .representation?:
            if receipt?.representation != nil { response.fields[.preferenceApplied] = "return=representation" }
        case nil: break
        }
        if let cascade {
            if !cascade.isComplete { response.status = .accepted }
            let applied = request.wait?.applied.map { "wait=\($0)" }
            response.fields[.preferenceApplied] = [response.fields[.preferenceApplied], applied].compactMap(\.self)
                .joined(separator: ", ")
        }
        return response
    }

    package func response(toUndecided request: DispatchRequest, latest: Cursor) -> Response {
        let body = Array(#"{"settled":false,"detail":"the action still waits for its turn"}"#.utf8)
        var response = Response.receipt(
            body, style: request.style, cursor: ShortText(latest), isForBrowser: request.options.isOfBrowser)
        response.status = .accepted
        return response
    }

    private func result(
        of outcome: Outcome, _ form: Transaction.Form, _ options: DispatchOptions, _ cascade: CascadeReport? = nil,
        epoch: Epoch
    ) -> Result<[UInt8], Problem> {
        switch outcome {
        case .committed(let receipt):
            .success(Self.json(receipt, ShortText(receipt.commitCursor), options, cascade.map { ($0, epoch) }))
        case .wouldCommit(let isChange, let patch):
            .success(
                JSONWriter.object {
                    $0.member("dryRun", true)
                    $0.member("changed", isChange)
                    if let patch { $0.member("patch", json: options.store.patch(patch)) }
                })
        case .nothingCommitted: .success(Array(#"{"committed":false,"changed":false}"#.utf8))
        case .rejected(let rejection, let index): .failure(Self.problem(rejection, index: form == .batch ? index : nil))
        case .preconditionFailed(let failure): .failure(Self.problem(failure, options.store))
        case .keyReused: .failure(.keyReused)
        case .full(let resource): .failure(.full(resource))
        case .notRecorded: .failure(.notDurable)
        case .unknown(let id): .failure(.outcomeUnknown(id: id))
        case .failed: .failure(.ourFault)
        case .draining: .failure(.draining)
        }
    }

    private static func json(
        _ receipt: Receipt, _ cursor: ShortText, _ options: DispatchOptions,
        _ cascade: (report: CascadeReport, epoch: Epoch)? = nil
    ) -> [UInt8] {
        var writer = JSONWriter(capacity: 192)
        // A cursor needs no escapes.
        cursor.withBytes { text in
            writer.raw("{\"cursor\":\"")
            writer.raw(text)
            writer.raw("\",\"version\":")
            writer.raw(UnsafeBufferPointer(rebasing: text[(Epoch.count + 1)...]))
            if let id = receipt.ownID {
                writer.raw(",\"id\":")
                writer.string(id)
            } else {
                writer.raw(",\"id\":\"")
                writer.raw(text)
                writer.raw("\"")
            }
        }
        writer.raw(receipt.isChange ? ",\"changed\":true" : ",\"changed\":false")
        if !receipt.scheduled.isEmpty { write(receipt, to: &writer) }
        if let representation = receipt.representation {
            let store = options.store
            writer.key("state")
            writer.object { writer in
                for (pointer, value) in representation {
                    for (pointer, value) in store.visible(value, at: pointer) {
                        guard let inner = store.inner(pointer) else { continue }
                        writer.key(escaping: inner.description)
                        writer.raw(value ?? Array("null".utf8))
                    }
                }
            }
        }
        if let cascade { write(cascade.report, options.store, epoch: cascade.epoch, to: &writer) }
        writer.byte(UInt8(ascii: "}"))
        return writer.bytes
    }

    private static func write(_ receipt: Receipt, to writer: inout JSONWriter) {
        if receipt.types == [StoreSchedule.type] {
            write(receipt.scheduled[0], to: &writer)
        } else if receipt.types.contains(StoreSchedule.type) {
            writer.key("scheduled")
            writer.array(receipt.scheduled.filter { !$0.name.isPlace }) { action, writer in
                writer.object { write(action, to: &$0) }
            }
        }
    }

    private static func write(_ action: ScheduledAction, to writer: inout JSONWriter) {
        writer.member("name", action.name.text)
        writer.member("due", text(action.due))
    }

    private static func write(
        _ cascade: CascadeReport, _ store: VisibleStore, epoch: Epoch, to writer: inout JSONWriter
    ) {
        writer.member("settled", cascade.isComplete)
        writer.key("caused")
        let isOwn = { (type: String) in store.isWhole && store.access.isUnlimited || store.sees(type: type) }
        // The commit that caused another one may have a hidden action.
        let isCauseSeen = store.access.seesEveryAction
        writer.array(cascade.caused.filter { $0.types.allSatisfy(isOwn) }) { commit, writer in
            writer.object { writer in
                writer.member("cursor", Cursor(epoch, commit.version).description)
                writer.member("version", commit.version)
                writer.member("id", commit.id)
                if isCauseSeen { writer.member("cause", commit.cause) }
                writer.key("types")
                writer.array(commit.types) { $1.string($0) }
                writer.member("changed", commit.isChange)
            }
        }
        if cascade.causedCount > cascade.caused.count, isCauseSeen { writer.member("causedCount", cascade.causedCount) }
        let refused = cascade.refused.filter { isOwn($0.type) }
        guard !refused.isEmpty else { return }
        writer.key("refused")
        writer.array(refused) { refused, writer in
            writer.object { writer in
                writer.member("type", refused.type)
                if isCauseSeen { writer.member("cause", refused.cause) }
                writer.member("code", refused.code)
                writer.member("detail", refused.detail)
            }
        }
    }

    private static func problem(_ rejection: Rejection, index: Int?) -> Problem {
        let payload = (index.map { "/\($0)" } ?? "") + "/payload"
        let status: HTTPResponse.Status =
            switch rejection.kind {
            case .conflict: .conflict
            case .invalid: .unprocessableContent
            case .tooLarge: .contentTooLarge
            case .missing: .notFound
            case .tooMany: .tooManyRequests
            }
        return Problem(
            status, rejection.code, rejection.detail,
            parts: rejection.pointer.map { [("\(payload)\($0)", rejection.detail)] } ?? [],
            members: index.map { [.number("index", $0)] } ?? [],
            fields: rejection.kind == .tooMany ? [.retryAfter: "60"] : [:])
    }

    private static func problem(_ failure: PreconditionFailure, _ store: VisibleStore) -> Problem {
        let pointer = store.inner(failure.pointer) ?? failure.pointer
        var members: [Problem.Member] = [.string("pointer", pointer.description)]
        if let expected = failure.expected { members.append(.init("expected", expected)) }
        // Without a value there is no `actual`: null would be one. Of a large value each line has size and tag only.
        let value = failure.expected == nil ? "a value" : "another value"
        let found: String
        switch (failure.actual, failure.actualBytes) {
        case (let actual?, _):
            members.append(.init("actual", actual))
            found = "\(value) is there"
        case (nil, let bytes?):
            members.append(.number("actualBytes", bytes))
            found = "\(value) is there, of \(bytes) bytes, more than this answer shows"
        case (nil, nil) where failure.expected == nil && !store.access.sees(failure.pointer):
            found = "this credential may not see whether something is there"
        case (nil, nil): found = "there is nothing there"
        }
        if let tag = failure.actualTag { members.append(.string("etag", "\"\(tag)\"")) }
        return Problem(
            .preconditionFailed, "precondition-failed",
            "\(pointer.tokens.isEmpty ? "the state" : pointer.shown) is not as expected: \(found); nothing was committed",
            members: members)
    }
}

extension Outcome {
    fileprivate var receipt: Receipt? { if case .committed(let receipt) = self { receipt } else { nil } }
}
