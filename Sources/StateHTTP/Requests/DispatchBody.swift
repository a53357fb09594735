internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

extension Contract {
    func lines(
        of body: [UInt8], _ options: DispatchOptions, _ conditions: DispatchConditions?
    ) throws(Problem) -> [DispatchRequest.Line] {
        var found: [DispatchRequest.Line] = []
        var faultsCount = 0
        // The search for similar names costs more than the rest of a faulty line: only the first line gets it.
        var hint = Hint.nearestNames
        // A line feed behind the last line begins no further one.
        let isEnded = body.last == UInt8(ascii: "\n")
        let linesCount = body.count { $0 == UInt8(ascii: "\n") } + (isEnded ? 0 : 1)
        guard linesCount <= limits.bulkLinesMax else {
            throw Problem(
                .contentTooLarge, "too-many-lines",
                "a bulk load has at most \(limits.bulkLinesMax) lines; send it in parts",
                members: [.number("limit", limits.bulkLinesMax)])
        }
        let lines = body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) {
            let content: Result<Transaction, Problem>
            do throws(Problem) {
                content = .success(try transaction(Array(line), options, conditions, line: index, &hint))
            } catch {
                content = .failure(error)
                faultsCount += 1
                // Each fault has an answer of its own, which is longer than the line.
                guard faultsCount <= limits.bulkFaultsMax else {
                    throw Problem(
                        .unprocessableContent, "too-many-faults",
                        "more than \(limits.bulkFaultsMax) lines have a fault, the last one: \(error.detail); nothing was committed",
                        members: [.number("line", index + 1)])
                }
            }
            found.append(.init(number: index + 1, content: content))
        }
        guard !found.isEmpty else {
            throw Problem(.badRequest, "malformed-json", "the body is empty; one action a line was expected")
        }
        return found
    }

    /// The `line` is the index of the line that the body is; nil for a whole body.
    func transaction(
        _ body: [UInt8], _ options: DispatchOptions, _ conditions: DispatchConditions?, line: Int?, _ hint: inout Hint
    ) throws(Problem) -> Transaction {
        let body = JSONText.withoutByteOrderMark(body)
        let document: JSONDocument
        do throws(JSONFault) {
            document = try JSONDocument(body, depthMax: limits.depthMax)
        } catch {
            throw .unreadable(error)
        }
        let node = JSONNode(document)
        let sent = JSONText.minified(body)
        var expectations: [Transaction.Expectation] = []
        var items: [Transaction.Item] = []
        if node.isArray, let elements = node.elements {
            guard !elements.isEmpty else {
                throw Problem(.unprocessableContent, "empty-batch", "a batch needs at least one action")
            }
            guard elements.count <= limits.batchActionsMax else {
                throw Problem(
                    .unprocessableContent, "batch-too-large", "a batch holds at most \(limits.batchActionsMax) actions")
            }
            for (element, span) in zip(elements, JSONText.elements(of: sent)) {
                items.append(try item(element, (sent, span), &expectations, options.store, &hint))
            }
        } else {
            // An item in a variable would be copied.
            items = [
                try item(node, (sent, 0..<sent.count), &expectations, options.store, &hint, isAlone: line == nil)
            ]
        }
        if let absence = conditions?.absence { expectations.insert(absence, at: 0) }
        let subject = options.store.access.subject
        return Transaction(
            items, form: node.isArray ? .batch : .single, purpose: options.purpose, expectations: expectations,
            tagGuard: conditions?.tagGuard,
            idempotency: conditions?.key.map { (IdempotencyKey($0, of: subject, line: line), ContentHash(body).text) },
            contentHash: conditions?.key == nil && items[0].id == nil ? ContentHash(body) : nil, subject: subject,
            trace: conditions?.trace, wantsRepresentation: options.returning == .representation)
    }

    static func fault(ofID id: String) -> String? {
        guard (1...255).contains(id.utf8.count) else { return "expected a string of 1 to 255 bytes" }
        guard !hasControlCharacter(id) else { return "expected a string without control characters" }
        return Cursor(text: id) == nil ? nil : "is spelled like a cursor, which is how the server names commits"
    }

    private static func hasControlCharacter(_ text: String) -> Bool {
        text.withBytes { bytes in
            bytes.indices.contains { index in
                bytes[index] < 0x20 || bytes[index] == 0x7F
                    // Text is UTF-8, so another byte follows.
                    || bytes[index] == 0xC2 && bytes[index + 1] < 0xA0
            }
        }
    }

    private struct Members {
        var type: UnsafeBufferPointer<UInt8>?
        var payload: JSONNode?
        var id: String?
        var schedule: JSONNode?
        var areAsRecorded = true
    }

    private func members(
        of node: JSONNode, _ expectations: inout [Transaction.Expectation], _ store: VisibleStore
    ) throws(Problem) -> Members {
        guard node.isObject else {
            throw invalid(node.pointer, "expected an action: an object with \"type\" and \"payload\"")
        }
        var found = Members()
        let document = node.document
        var key = document.firstChild(node.index)
        while !document.isEnd(key) {
            let value = JSONNode(document, key + 1)
            switch document.utf8(key) {
            case "type":
                guard let text = value.utf8 else { throw invalid(value.pointer, "expected a string") }
                found.type = text
                if found.payload != nil { found.areAsRecorded = false }
            case "payload":
                found.payload = value
                if value.isObject, value.isEmpty { found.areAsRecorded = false }
            case "id":
                let text = value.string ?? ""
                if let fault = Self.fault(ofID: text) { throw invalid(value.pointer, fault) }
                found.id = text
                if found.type != nil || found.payload != nil { found.areAsRecorded = false }
            case "meta":
                guard value.isObject else { throw invalid(value.pointer, "expected an object") }
                found.areAsRecorded = false
            case "expect":
                try expect(value, &expectations, store)
                found.areAsRecorded = false
            case "schedule":
                found.schedule = value
                found.areAsRecorded = false
            default:
                throw invalid(
                    value.pointer,
                    "there is no such field; the known fields are type, payload, id, meta, expect, schedule")
            }
            key = document.after(key + 1)
        }
        return found
    }

    private func item(
        _ node: JSONNode, _ sent: (bytes: [UInt8], span: Range<Int>), _ expectations: inout [Transaction.Expectation],
        _ store: VisibleStore, _ hint: inout Hint, isAlone: Bool = false
    ) throws(Problem) -> Transaction.Item {
        let members = try members(of: node, &expectations, store)
        let (payload, id, schedule) = (members.payload, members.id, members.schedule)
        guard let type = members.type else {
            throw invalid(node.pointer.appending("type"), "is missing; expected a string")
        }
        guard let entry = store.entry(named: type) else {
            let type = String(decoding: type, as: UTF8.self)
            guard type == Commit.restoreType, store.restores else {
                defer { hint = .list }
                throw unknownType(type, at: node.pointer.appending("type"), store, hint)
            }
            if isAlone, let schedule { throw invalid(schedule.pointer, "a state is restored at once") }
            return try restoration(payload, in: node, sent, id: id, isAlone: isAlone)
        }
        if let payload, !payload.isObject, !entry.actionType.takesAnyValue {
            throw invalid(payload.pointer, "expected an object")
        }
        let action: any Action
        do throws(PayloadFaults) {
            action = try entry.actionType.decode(payload)
        } catch {
            throw invalid(error, payload, in: node)
        }
        if !store.access.seesAll, let (name, fault) = store.fault(inPlacesOf: action) {
            throw invalid(JSONPointer(node.pointer.tokens + ["payload"] + name.tokens), fault)
        }
        if members.areAsRecorded {
            let isWhole = sent.span.count == sent.bytes.count
            return .init(action, of: entry, id: id, sent: isWhole ? sent.bytes : Array(sent.bytes[sent.span]))
        }
        let (recorded, meta) = Self.recorded(sent.bytes, sent.span)
        let parts = schedule == nil ? [] : JSONText.members(of: sent.bytes, in: sent.span)
        guard let schedule, let member = parts.first(where: { $0.key == "schedule" }) else {
            return .init(action, of: entry, id: id, meta: meta, sent: recorded)
        }
        return try scheduled(action, schedule, id: id, sent: (recorded, sent.bytes[member.value]), by: store.access)
    }

    private func restoration(
        _ payload: JSONNode?, in node: JSONNode, _ sent: (bytes: [UInt8], span: Range<Int>), id: String?, isAlone: Bool
    ) throws(Problem) -> Transaction.Item {
        guard isAlone else {
            throw invalid(node.pointer, "an action that restores a state must be the only action of its request")
        }
        let (recorded, meta) = Self.recorded(sent.bytes, sent.span)
        return .init(content: .restore(try restoration(payload, in: node)), id: id, meta: meta, sent: recorded)
    }

    private func restoration(_ payload: JSONNode?, in node: JSONNode) throws(Problem) -> Restoration {
        let members = payload?.members.map { Array($0) } ?? []
        guard members.count == 1, let (key, value) = members.first else {
            throw invalid(node.pointer.appending("payload"), "expected an object with version, or with fork")
        }
        // A whole number may be spelled with a point, as 4.0.
        if key == "version", let version: Version = try? value.decode() { return Restoration(.version(version)) }
        if key == "fork", let name = value.string { return Restoration(.fork(name)) }
        throw invalid(value.pointer, "expected a number as version, or the name of a fork as fork")
    }

    private static func recorded(_ bytes: [UInt8], _ object: Range<Int>) -> (action: [UInt8], meta: [UInt8]?) {
        let members = JSONText.members(of: bytes, in: object)
        var (recorded, meta): ([UInt8], [UInt8]?) = ([UInt8(ascii: "{")], nil)
        for key in ["id", "type", "payload", "meta"] {
            // The tests of the state are no part of the action, and an empty payload is as none.
            guard let member = members.first(where: { $0.key == key }),
                key != "payload" || !bytes[member.value].elementsEqual("{}".utf8)
            else { continue }
            if recorded.count > 1 { recorded.append(UInt8(ascii: ",")) }
            recorded += bytes[member.span]
            if key == "meta" { meta = Array(bytes[member.value]) }
        }
        return (recorded + [UInt8(ascii: "}")], meta)
    }

    private func invalid(_ error: PayloadFaults, _ payload: JSONNode?, in node: JSONNode) -> Problem {
        // Without a payload, the pointers of the faults begin at the pointer of the missing payload.
        let place = payload == nil ? node.pointer.tokens + ["payload"] : []
        let faults = error.faults.map { (pointer: JSONPointer(place + $0.pointer.tokens), detail: $0.detail) }
        return Problem(
            .unprocessableContent, "invalid-action", "\(faults[0].pointer.shown): \(faults[0].detail)",
            parts: faults.map { ($0.pointer.description, $0.detail) })
    }

    private static let test = "an object with \"path\" and one of \"value\", \"absent\": true and \"present\": true"

    private func expect(
        _ node: JSONNode, _ expectations: inout [Transaction.Expectation], _ store: VisibleStore
    ) throws(Problem) {
        guard let elements = node.elements else {
            throw invalid(node.pointer, "expected an array, in which each element is \(Self.test)")
        }
        guard expectations.count + elements.count <= limits.expectationsMax else {
            throw invalid(node.pointer, "expected at most \(limits.expectationsMax) tests in a commit")
        }
        for element in elements {
            let members = Dictionary(element.members?.map { ($0.key, $0.value) } ?? []) { $1 }
            let wanted: Transaction.Expectation.Wanted? =
                members["value"].map { .value($0.value) }
                ?? (members["present"]?.value == .bool(true) ? .anyValue : nil)
                ?? (members["absent"]?.value == .bool(true) ? .nothing : nil)
            guard members.count == 2, let path = members["path"], let wanted else {
                throw invalid(element.pointer, "expected \(Self.test)")
            }
            guard let pointer = path.string.flatMap(JSONPointer.init(text:)) else {
                throw invalid(path.pointer, JSONPointer.expectation(of: path.string ?? ""))
            }
            let outer = store.outer(pointer)
            expectations.append(.init(outer, wanted, isHidden: !store.access.sees(outer)))
        }
    }

    private func invalid(_ pointer: JSONPointer, _ detail: String) -> Problem {
        let name = pointer.tokens.isEmpty ? "the body" : pointer.shown
        return Problem(
            .unprocessableContent, "invalid-action", "\(name): \(detail)", parts: [(pointer.description, detail)])
    }

    enum Hint {
        /// Serves the first fault of a body only, because the search is slow.
        case nearestNames
        case list
    }

    func unknownType(
        _ type: String, at pointer: JSONPointer?, _ store: VisibleStore, _ hint: Hint = .nearestNames
    ) -> Problem {
        let near = hint == .nearestNames ? NearestNames.of(type, among: store.types).filter { $0 != type } : []
        let hint =
            near.isEmpty ? "GET \(store.path)/actions lists them" : "did you mean \(near.joined(separator: " or "))?"
        // Nobody learns by the words whether a type is missing or hidden.
        let mayBeHidden = pointer == nil ? !store.access.seesAll : !store.access.dispatchesAll
        let hidden = mayBeHidden ? ", or this token may not \(pointer == nil ? "see" : "dispatch") it" : ""
        let detail = "there is no action of this type\(hidden); \(hint)"
        return Problem(
            pointer == nil ? .badRequest : .unprocessableContent, "unknown-action", detail,
            parts: pointer.map { [($0.description, detail)] } ?? [])
    }
}
