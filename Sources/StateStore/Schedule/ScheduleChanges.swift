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

/// A state with its schedule, as journals save it: compact JSON of the state, and where actions are scheduled, a line feed
/// and the JSON of the schedule.
///
/// So the hash of a snapshot covers both.
package struct SavedState: Sendable {
    package var state: [UInt8]
    package var schedule: ActionSchedule

    package init(_ state: [UInt8], _ schedule: ActionSchedule) { (self.state, self.schedule) = (state, schedule) }

    /// Divides the bytes of a snapshot, and throws where the schedule cannot be read; nothing is said of the state.
    package init(saved bytes: [UInt8], under change: EpochChange? = nil) throws(JSONFault) {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")), end + 1 < bytes.count else {
            self.init(bytes, ActionSchedule())
            return
        }
        self.init(Array(bytes[..<end]), try ActionSchedule(Array(bytes[(end + 1)...]), under: change))
    }

    package var bytes: [UInt8] { schedule.isEmpty ? state : state + [UInt8(ascii: "\n")] + schedule.json }
}

extension Snapshot {
    /// The state with its schedule, as a journal saves it; O(n) in both, and never an error for a committed state.
    package func saved() throws -> [UInt8] { SavedState(try whole(), schedule).bytes }
}
