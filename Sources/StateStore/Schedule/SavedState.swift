package import StateJSON

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
