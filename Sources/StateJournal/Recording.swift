internal import StateJSON
package import StateStore

/// A history as JSON Lines: a header with the state that it begins with, then a commit a line, in order.
///
/// Idempotency keys are not in it: they answer the retries of requests to one server.
package enum Recording {
    /// Raised when the lines change; another one than ours is refused.
    static let format = 1

    /// The first line.
    package struct Header: Sendable {
        /// The name of the history that was recorded.
        package var epoch: Epoch
        /// The version of the state.
        package var version: Version
        /// The version of the last commit, so that a recording that was cut off is noticed; nil in one that does not say.
        package var head: Version?
        /// UTF-8 JSON.
        package var state: [UInt8]

        /// Makes a header.
        package init(epoch: Epoch, version: Version, head: Version?, state: [UInt8]) {
            self.epoch = epoch
            self.version = version
            self.head = head
            self.state = state
        }
    }

    /// The first line, with its end.
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
        if let head = header.head {
            writer.key("head", &isFirst)
            writer.integer(head)
        }
        writer.key("state", &isFirst)
        writer.raw(header.state)
        writer.raw("}\n")
        return writer.bytes
    }

    /// The line of a commit, with its end.
    package static func line(of commit: Commit) -> [UInt8] {
        var writer = JSONWriter(capacity: commit.action.count + commit.patch.count + 128)
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.key("version", &isFirst)
        writer.integer(commit.version)
        writer.key("time", &isFirst)
        writer.integer(commit.time.milliseconds)
        writer.member("id", commit.id, &isFirst)
        // The action tells those of a batch too, but not where a middleware has made other actions of it.
        if !commit.clientIDs.isEmpty, commit.clientIDs != [commit.id] {
            writer.key("ids", &isFirst)
            writer.array(commit.clientIDs) { $1.string($0) }
        }
        writer.member("cause", commit.cause, &isFirst)
        writer.member("root", commit.root, &isFirst)
        writer.key("action", &isFirst)
        writer.raw(commit.action)
        writer.key("patch", &isFirst)
        writer.raw(commit.patch)
        writer.raw("}\n")
        return writer.bytes
    }
}

/// A line of a recording that cannot be taken.
package struct RecordingFault: Error, Sendable, CustomStringConvertible {
    /// The line, counted from 1.
    package var line: Int
    /// What is wrong with it.
    package var detail: String

    /// Makes a fault.
    package init(line: Int, _ detail: String) {
        self.line = line
        self.detail = detail
    }

    /// Which line, and what is wrong.
    package var description: String { "line \(line): \(detail)" }
}
