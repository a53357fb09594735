internal import StateJSON
package import StateStore

/// A history as JSON Lines: a header with the first state, then one commit a line, in order.
///
/// A recording has no idempotency keys, which serve the retries of requests to one server.
package enum Recording {
    /// The number of this format; a program refuses recordings of any other.
    static let format = 1

    /// The first line of a recording.
    package struct Header: Sendable {
        /// The epoch of the recorded history.
        package var epoch: Epoch
        /// The version of the first state.
        package var version: Version
        /// The version of the last commit, by which a reader detects a recording that was cut off, or nil if the header
        /// has none.
        ///
        /// The JSON member is `head`.
        package var latest: Version?
        /// The first state, as ``SavedState`` has it.
        ///
        /// The JSON members are `state` and, where actions are scheduled, `schedule`.
        package var state: [UInt8]

        /// Makes a header from its members.
        package init(epoch: Epoch, version: Version, latest: Version?, state: [UInt8]) {
            (self.epoch, self.version, self.latest, self.state) = (epoch, version, latest, state)
        }
    }

    /// Encodes the first line, with its line feed.
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

    /// Encodes the line of a commit, with its line feed.
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

/// Why a line of a recording is invalid.
package struct RecordingFault: Error, Sendable, CustomStringConvertible {
    /// The line, counted from 1.
    package var line: Int
    /// The fault in it.
    package var detail: String

    /// Makes a fault from its line and detail.
    package init(line: Int, _ detail: String) {
        (self.line, self.detail) = (line, detail)
    }

    /// The number of the line and what is wrong with it.
    package var description: String { "line \(line): \(detail)" }
}
