internal import StateJSON
package import StateStore

/// JSON Lines: a header with the first state, then one commit a line, without keys, which serve retries to one server.
package enum Recording {
    /// A program refuses any other.
    static let format = 1

    package struct Header: Sendable {
        package var epoch: Epoch
        package var version: Version
        /// By it a reader detects a recording that was cut off; the JSON member is `head`, nil if the header has none.
        package var latest: Version?
        /// As ``SavedState`` has it; the JSON members are `state` and, where actions are scheduled, `schedule`.
        package var state: [UInt8]

        package init(epoch: Epoch, version: Version, latest: Version?, state: [UInt8]) {
            (self.epoch, self.version, self.latest, self.state) = (epoch, version, latest, state)
        }
    }

    package static func line(of header: Header) -> [UInt8] {
        var writer = JSONWriter(capacity: header.state.count + 128)
        writer.byte(UInt8(ascii: "{"))
        writer.member("storekeeper", "journal")
        writer.member("format", format)
        writer.member("epoch", header.epoch.text)
        writer.member("version", header.version)
        if let latest = header.latest { writer.member("head", latest) }
        // A line feed, which no compact JSON has, divides them.
        let parts = header.state.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        writer.member("state", json: parts[0])
        if parts.count > 1 { writer.member("schedule", json: parts[1]) }
        writer.raw("}\n")
        return writer.bytes
    }

    package static func line(of commit: Commit) -> [UInt8] {
        var writer = JSONWriter(capacity: commit.action.count + commit.patch.count + 128)
        writer.byte(UInt8(ascii: "{"))
        writer.member("version", commit.version)
        writer.member("time", commit.time.milliseconds)
        writer.member("id", commit.id)
        // The action has the IDs of a batch, too, unless a middleware has replaced the batch by other actions.
        if !commit.clientIDs.isEmpty, commit.clientIDs != [commit.id] {
            writer.key("ids")
            writer.array(commit.clientIDs) { $1.string($0) }
        }
        writer.member("cause", commit.cause)
        writer.member("root", commit.root)
        writer.member("by", commit.by)
        writer.member("traceparent", commit.trace)
        writer.member("action", json: commit.action)
        writer.member("patch", json: commit.patch)
        if let schedule = commit.schedule { writer.member("schedule", json: schedule.json) }
        writer.raw("}\n")
        return writer.bytes
    }
}

package struct RecordingFault: Error, Sendable, CustomStringConvertible {
    /// Counts from 1.
    package var line: Int
    package var detail: String

    package init(line: Int, _ detail: String) {
        (self.line, self.detail) = (line, detail)
    }

    package var description: String { "line \(line): \(detail)" }
}
