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
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.member("storekeeper", "journal", &isFirst)
        writer.key("format", &isFirst)
        writer.integer(format)
        writer.member("epoch", header.epoch.text, &isFirst)
        writer.key("version", &isFirst)
        writer.integer(header.version)
        if let latest = header.latest {
            writer.key("head", &isFirst)
            writer.integer(latest)
        }
        // A line feed, which no compact JSON has, divides them.
        let parts = header.state.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        writer.key("state", &isFirst)
        writer.raw(parts[0])
        if parts.count > 1 {
            writer.key("schedule", &isFirst)
            writer.raw(parts[1])
        }
        writer.raw("}\n")
        return writer.bytes
    }

    package static func line(of commit: Commit) -> [UInt8] {
        var writer = JSONWriter(capacity: commit.action.count + commit.patch.count + 128)
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.key("version", &isFirst)
        writer.integer(commit.version)
        writer.key("time", &isFirst)
        writer.integer(commit.time.milliseconds)
        writer.member("id", commit.id, &isFirst)
        // The action has the IDs of a batch, too, unless a middleware has replaced the batch by other actions.
        if !commit.clientIDs.isEmpty, commit.clientIDs != [commit.id] {
            writer.key("ids", &isFirst)
            writer.array(commit.clientIDs) { $1.string($0) }
        }
        writer.member("cause", commit.cause, &isFirst)
        writer.member("root", commit.root, &isFirst)
        writer.member("by", commit.by, &isFirst)
        writer.member("traceparent", commit.trace, &isFirst)
        writer.key("action", &isFirst)
        writer.raw(commit.action)
        writer.key("patch", &isFirst)
        writer.raw(commit.patch)
        if let schedule = commit.schedule {
            writer.key("schedule", &isFirst)
            writer.raw(schedule.json)
        }
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
