internal import StateJSON
package import StateStore

package struct RecordingReader {
    package let header: Recording.Header
    package private(set) var line = 1
    private var version: Version
    private let epoch: Epoch

    /// An ID that is a cursor of the recorded history becomes the cursor with the same version under `epoch`.
    package init(_ first: [UInt8]?, for epoch: Epoch) throws(RecordingFault) {
        guard let first else { throw RecordingFault(line: 1, "there is no line; a recording begins with a header") }
        var members = try Members(first, line: 1)
        guard try members.string("storekeeper") == "journal" else {
            throw RecordingFault(line: 1, "storekeeper is not \"journal\": it is not a recording of a journal")
        }
        let format = try members.integer("format")
        guard format == Recording.format else {
            throw RecordingFault(line: 1, "its format is \(format), this program reads \(Recording.format)")
        }
        guard let recorded = Epoch(try members.string("epoch")) else {
            throw RecordingFault(line: 1, "epoch is not the name of a history")
        }
        let state = try members.value("state").text
        header = Recording.Header(
            epoch: recorded, version: try members.version("version"),
            latest: members.has("head") ? try members.version("head") : nil,
            state: try members.has("schedule")
                ? Self.saved(state, members.value("schedule").text, EpochChange(from: recorded, to: epoch)) : state)
        try members.end()
        version = header.version
        self.epoch = epoch
    }

    /// Throws for a version that is not the next.
    package mutating func take(_ bytes: [UInt8]) throws(RecordingFault) -> Commit {
        line += 1
        var members = try Members(bytes, line: line)
        let found = try members.version("version")
        guard found == version + 1 else {
            throw RecordingFault(line: line, "it has version \(found) where \(version + 1) comes next")
        }
        let time = try members.time("time")
        let id = try members.string("id")
        let (types, action) = try actions(&members)
        guard case .array = try members.peek("patch") else {
            throw RecordingFault(line: line, "patch is not an array of operations")
        }
        let change = EpochChange(from: header.epoch, to: epoch)
        let cause = try members.stringIfPresent("cause").map(change.id)
        let root = try members.stringIfPresent("root").map(change.id)
        let by = try members.stringIfPresent("by")
        let trace = try members.stringIfPresent("traceparent")
        let clientIDs = try clientIDs(id, at: found, &members)
        let patch = try members.value("patch").text
        let schedule = try members.has("schedule") ? schedule(members.value("schedule").text, change) : nil
        try members.end()
        version = found
        let isOwn = clientIDs.contains { JSONPointer.sameBytes($0, id) }
        return Commit(
            version: found, time: time, id: isOwn ? id : Cursor(epoch, found).description,
            cause: cause, root: root, by: by, trace: trace, types: types, action: action, patch: patch,
            clientIDs: clientIDs, schedule: schedule)
    }

    private func schedule(_ changes: [UInt8], _ change: EpochChange) throws(RecordingFault) -> ScheduleChanges {
        do {
            return try ScheduleChanges(changes, under: change)
        } catch {
            throw RecordingFault(line: line, "schedule is not a list of changes: at \(error.pointer) \(error.detail)")
        }
    }

    private static func saved(
        _ state: [UInt8], _ schedule: [UInt8], _ change: EpochChange
    ) throws(RecordingFault) -> [UInt8] {
        do {
            return SavedState(state, try ActionSchedule(schedule, under: change)).bytes
        } catch {
            throw RecordingFault(
                line: 1, "schedule is not a list of scheduled actions: at \(error.pointer) \(error.detail)")
        }
    }

    package func end() throws(RecordingFault) {
        guard let latest = header.latest, latest != version else { return }
        throw RecordingFault(
            line: line + 1,
            "there is no further line; the header says that the recording ends at version \(latest), not \(version)")
    }

    private func clientIDs(
        _ id: String, at version: Version, _ members: inout Members
    ) throws(RecordingFault) -> [String] {
        var ids: [String] = []
        if let cursor = Cursor(text: id) {
            guard cursor == Cursor(header.epoch, version) else {
                throw RecordingFault(line: line, "id is spelled like the cursor of another commit")
            }
        } else {
            ids = [id]
        }
        guard members.has("ids") else { return ids }
        guard case .array(let others) = try members.value("ids") else {
            throw RecordingFault(line: line, "ids is not an array of strings")
        }
        for other in others {
            guard case .string(let text) = other, Cursor(text: text) == nil else {
                throw RecordingFault(line: line, "ids has an element that is not a client's ID")
            }
            if !ids.contains(where: { JSONPointer.sameBytes($0, text) }) { ids.append(text) }
        }
        return ids
    }

    private func actions(_ members: inout Members) throws(RecordingFault) -> (types: [String], bytes: [UInt8]) {
        let value = try members.value("action")
        let elements: [JSONValue] = if case .array(let elements) = value { elements } else { [value] }
        var types: [String] = []
        for element in elements {
            guard case .object(let object) = element, case .string(let type)? = object["type"], !type.isEmpty,
                !type.contains(",")
            else { throw RecordingFault(line: line, "action is not an object with a type, or an array of them") }
            types.append(type)
        }
        return (types, value.text)
    }
}

private struct Members {
    private var object: JSONObject
    private let line: Int
    /// The years 0 to 9999.
    private static let times = Timestamp(milliseconds: -62_167_219_200_000)...DueTime.latest

    init(_ bytes: [UInt8], line: Int) throws(RecordingFault) {
        self.line = line
        let value: JSONValue
        do throws(JSONFault) {
            // A state may be nested 1,000 levels deep, and a line has it a few levels deeper.
            value = try JSONValue(parsing: bytes, depthMax: 1010)
        } catch {
            throw RecordingFault(line: line, "it cannot be read as JSON: \(error.detail)")
        }
        guard case .object(let object) = value else { throw RecordingFault(line: line, "it is not a JSON object") }
        self.object = object
    }

    func has(_ key: String) -> Bool { object.contains(key) }

    func peek(_ key: String) throws(RecordingFault) -> JSONValue {
        guard let value = object[key] else { throw RecordingFault(line: line, "\(key) is missing") }
        return value
    }

    mutating func value(_ key: String) throws(RecordingFault) -> JSONValue {
        let value = try peek(key)
        object[key] = nil
        return value
    }

    mutating func string(_ key: String) throws(RecordingFault) -> String {
        guard case .string(let text) = try value(key) else {
            throw RecordingFault(line: line, "\(key) is not a string")
        }
        return text
    }

    mutating func stringIfPresent(_ key: String) throws(RecordingFault) -> String? {
        has(key) ? try string(key) : nil
    }

    mutating func integer(_ key: String) throws(RecordingFault) -> Int64 {
        guard case .integer(let number) = try value(key) else {
            throw RecordingFault(line: line, "\(key) is not a whole number in its range")
        }
        return number
    }

    mutating func version(_ key: String) throws(RecordingFault) -> Version {
        guard let version = Version(recorded: try integer(key)) else {
            throw RecordingFault(line: line, "\(key) is not a whole number in its range")
        }
        return version
    }

    mutating func time(_ key: String) throws(RecordingFault) -> Timestamp {
        let time = Timestamp(milliseconds: try integer(key))
        guard Self.times.contains(time) else {
            throw RecordingFault(line: line, "\(key) is not a time of the years 0 to 9999")
        }
        return time
    }

    func end() throws(RecordingFault) {
        guard let other = object.members.first?.key else { return }
        throw RecordingFault(line: line, "there is no member \(other) in a recording")
    }
}
