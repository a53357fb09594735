package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

package struct ScheduleRequest: Sendable {
    let store: VisibleStore
    let name: String?
    let limit: Int
    let style: Style
    package let requestName: RequestName
}

extension Contract {
    func schedule(_ routed: RoutedRequest, _ path: [String]) throws(Problem) -> Plan {
        let (request, store) = (routed.request, routed.store)
        // A name may hold a slash.
        let name = path.isEmpty || path == [""] ? nil : path.joined(separator: "/")
        switch request.method {
        case .get, .head:
            let parameters = try Parameters(routed.target, known: name == nil ? ["limit", "pretty"] : ["pretty"])
            let limit = min(try self.limit(parameters) ?? limits.changesLimitDefault, limits.changesLimitMax)
            return .schedule(
                ScheduleRequest(
                    store: store, name: name, limit: limit, style: try parameters.style(),
                    requestName: routed.circumstances.name))
        case .delete where name != nil:
            let parameters = try Parameters(routed.target, known: ["by", "pretty"])
            let (subject, trace, name) = (store.access.subject, request.trace?.text, name ?? "")
            let by = try parameters.text("by")
            let command = "DELETE \(name)\(by.map { " \($0)" } ?? "")"
            // Of other clients, only who may do everything names what is scheduled.
            guard by == nil || store.access.grant.isEverything else { throw .notScheduled }
            let options = DispatchOptions(store: store, style: try parameters.style(), isOfBrowser: true)
            let key = try idempotencyKey(request)
            let transaction = Transaction(
                [.init(StoreUnschedule(name: name, by: by))],
                idempotency: key.map { (IdempotencyKey($0, of: subject), ContentHash(Array(command.utf8)).text) },
                subject: subject, trace: trace)
            return .dispatch(DispatchRequest(options: options, content: .one(transaction)))
        default:
            let allowed = name == nil ? "GET, HEAD, OPTIONS" : "GET, HEAD, DELETE, OPTIONS"
            return .respond(try Self.refuseMethod(request, allowed: allowed))
        }
    }

    /// The answer to a GET of the scheduled actions; O(n) in their number.
    package func response(to request: ScheduleRequest, in snapshot: Snapshot) -> Response {
        let store = request.store
        guard let name = request.name else {
            var shown: [ScheduledAction] = []
            var count = 0
            snapshot.schedule.visit { action in
                guard store.sees(action) else { return }
                count += 1
                if count <= request.limit { shown.append(action) }
            }
            let body = JSONWriter.object { writer in
                writer.key("schedule")
                writer.array(shown) { Self.write($0, of: snapshot.cursor.epoch, store, to: &$1) }
                writer.member("count", count)
            }
            return .json(.ok, body, style: request.style, latest: snapshot.cursor)
        }
        guard let action = snapshot.schedule[ScheduledName(name, by: store.access.subject)] else {
            return response(
                to: .notScheduled, latest: snapshot.cursor, name: request.requestName, style: request.style)
        }
        var writer = JSONWriter()
        Self.write(action, of: snapshot.cursor.epoch, store, to: &writer)
        return .json(.ok, writer.bytes, style: request.style, latest: snapshot.cursor)
    }

    private static func write(
        _ action: ScheduledAction, of epoch: Epoch, _ store: VisibleStore, to writer: inout JSONWriter
    ) {
        writer.object { writer in
            writer.member(action.name.isPlace ? "place" : "name", action.name.text)
            writer.member("due", text(action.due))
            guard store.seesAction(of: action) else { return }
            writer.member("by", action.name.by)
            writer.member("cause", Cursor(epoch, action.version).description)
            writer.member("action", json: action.action)
        }
    }

    /// The texts of `sent` are the action as it is to be recorded, and the member as it was sent, without white space.
    func scheduled(
        _ action: any Action, _ node: JSONNode, id: String?, sent: (action: [UInt8], schedule: ArraySlice<UInt8>),
        by access: Access
    ) throws(Problem) -> Transaction.Item {
        guard let members = node.members else {
            throw Self.badSchedule(node.pointer, "expected an object with \"after\" or \"at\"")
        }
        var (after, at, name): (Double?, String?, String?)
        for (key, value) in members {
            switch key {
            case "after":
                guard let seconds: Double = try? value.decode(), DueTime(seconds: seconds) != nil else {
                    throw Self.badSchedule(
                        value.pointer, "expected a number of seconds from 0 on, within the year 9999")
                }
                after = seconds
            case "at":
                guard let text = value.string, DueTime(text: text) != nil else {
                    throw Self.badSchedule(
                        value.pointer,
                        "expected a time with its zone, as RFC 3339 has it, such as 2030-01-31T12:00:00Z")
                }
                at = text
            case "name":
                let text = value.string ?? ""
                if let fault = Self.fault(ofID: text) { throw Self.badSchedule(value.pointer, fault) }
                name = text
            default:
                throw Self.badSchedule(value.pointer, "there is no such field; the known fields are after, at, name")
            }
        }
        guard (after == nil) != (at == nil) else {
            throw Self.badSchedule(node.pointer, "expected one of \"after\", in seconds, and \"at\", a time")
        }
        var recorded = Array("{".utf8)
        if let id {
            var writer = JSONWriter()
            writer.string(id)
            recorded += Array("\"id\":".utf8) + writer.bytes + Array(",".utf8)
        }
        recorded += Array("\"type\":\"\(StoreSchedule.type)\",\"payload\":{\"action\":".utf8) + sent.action
        if let credential = access.credential { recorded += Array(",\"credential\":\"\(credential.rawValue)\"".utf8) }
        // The members of the schedule stand beside the action.
        recorded += Array(",".utf8) + sent.schedule.dropFirst() + Array("}".utf8)
        do throws(JSONFault) {
            let schedule = try StoreSchedule(
                action, sent: sent.action, after: after, at: at, name: name, by: access.credential)
            return .init(schedule, id: id, sent: recorded)
        } catch { throw .unreadable(error) }
    }

    private static func badSchedule(_ pointer: JSONPointer, _ detail: String) -> Problem {
        Problem(.badRequest, "bad-schedule", "\(pointer.shown): \(detail)", parts: [(pointer.description, detail)])
    }
}

extension VisibleStore {
    fileprivate func sees(_ action: ScheduledAction) -> Bool {
        if action.name.isPlace { return JSONPointer(text: action.name.text).map(access.sees) ?? false }
        return isOwn(action) || seesAction(of: action)
    }

    fileprivate func seesAction(of action: ScheduledAction) -> Bool {
        isOwn(action)
            || access.sees(actionsBy: action.name.by) && (access.isUnlimited || access.sees(type: action.type))
    }

    private func isOwn(_ action: ScheduledAction) -> Bool {
        ExactText(optional: action.name.by) == ExactText(optional: access.subject)
    }
}
