package import StateJSON

package enum ScheduleChange: Sendable {
    case put(ScheduledAction, replacing: Bool)
    case removed(ScheduledName, Reason)

    package enum Reason: String, Sendable {
        case fired = "fire"
        case refused = "refuse"
        /// A client or a reducer has taken it back.
        case cancelled = "cancel"
        /// The place that the action was to remove has gone, or has another value.
        case ended = "end"
    }
}

package final class ScheduleChanges: Sendable {
    package let changes: [ScheduleChange]
    /// UTF-8 JSON: an array of objects, as segments and recordings have it.
    package let json: [UInt8]

    init(_ changes: [ScheduleChange]) {
        self.changes = changes
        json = Self.json(of: changes)
    }

    /// Reads ``json``, with IDs that are cursors as `change` spells them.
    package init(_ json: [UInt8], under change: EpochChange? = nil) throws(JSONFault) {
        var changes: [ScheduleChange] = []
        let node = JSONNode(try JSONDocument(json, depthMax: 1010))
        guard let elements = node.elements else { throw JSONFault(.mismatch, at: .root, "expected an array") }
        for element in elements {
            let operation = ScheduledAction.member("op", of: element) ?? ""
            if let reason = ScheduleChange.Reason(rawValue: operation) {
                guard let name = ScheduledName(element) else {
                    throw JSONFault(.mismatch, at: element.pointer, "expected a name")
                }
                changes.append(.removed(name, reason))
            } else if operation == "add" || operation == "replace" {
                let action = try ScheduledAction(element) { change?.id($0) ?? $0 }
                changes.append(.put(action, replacing: operation == "replace"))
            } else {
                throw JSONFault(.mismatch, at: element.pointer, "expected a change of the schedule")
            }
        }
        (self.changes, self.json) = (changes, Self.json(of: changes))
    }

    var ended: (name: ScheduledName, reason: ScheduleChange.Reason)? {
        guard case .removed(let name, let reason)? = changes.first, [.fired, .refused].contains(reason) else {
            return nil
        }
        return (name, reason)
    }

    fileprivate static func json(of changes: [ScheduleChange]) -> [UInt8] {
        var writer = JSONWriter()
        writer.array(changes) { change, writer in
            writer.object { writer in
                switch change {
                case .put(let action, let replacing):
                    writer.member("op", replacing ? "replace" : "add")
                    action.write(to: &writer)
                case .removed(let name, let reason):
                    writer.member("op", reason.rawValue)
                    name.write(to: &writer)
                }
            }
        }
        return writer.bytes
    }
}
