internal import FoundationEssentials
package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

extension Contract {
    /// Says which commits there are, and where to go on.
    package func response(to request: FollowRequest, _ page: ChangesPage) -> Response {
        var writer = JSONWriter(capacity: 256 + page.commits.reduce(0) { $0 + $1.action.count + $1.patch.count + 160 })
        let epoch = page.head.epoch
        writer.raw("{\"changes\":[")
        var isFirst = true
        for commit in page.commits {
            writer.separator(&isFirst)
            Self.write(commit, epoch: epoch, to: &writer)
        }
        writer.raw("],\"next\":")
        writer.string(Cursor(epoch, page.next).description)
        writer.raw(",\"more\":")
        writer.bool(page.isMore)
        writer.raw(",\"head\":")
        writer.string(page.head.description)
        writer.byte(UInt8(ascii: "}"))
        return applied(.json(.ok, writer.bytes, style: request.style, head: page.head), request.wait)
    }

    /// Says that a position is gone: a problem, or where the client has asked for it the state to begin again with.
    ///
    /// - Parameter snapshot: the head's whole state.
    package func response(
        to request: FollowRequest, lost code: LostCursor, position: HeadPosition, state: () throws -> [UInt8]
    ) -> Response {
        guard request.onLost == .snapshot, let state = try? state() else {
            return response(
                to: lost(code.rawValue, position), head: position.head, requestID: request.requestID,
                style: request.style)
        }
        var writer = JSONWriter(capacity: state.count + 128)
        writer.raw("{\"reset\":true,\"reason\":")
        writer.string(code.rawValue)
        writer.raw(",\"state\":")
        writer.raw(state)
        writer.raw(",\"next\":")
        writer.string(position.head.description)
        writer.byte(UInt8(ascii: "}"))
        return applied(.json(.ok, writer.bytes, style: request.style, head: position.head), request.wait)
    }

    /// Says what has become of an action.
    package func response(
        toOutcomeOf id: String, _ commit: Commit?, head: Cursor, style: Style, requestID: String
    ) -> Response {
        guard let commit else {
            let problem = Problem(
                .notFound, "no-such-action",
                "no commit with this ID is kept: it was never committed, or it is older than the history that is kept")
            return response(to: problem, head: head, requestID: requestID, style: style)
        }
        var writer = JSONWriter()
        Self.write(commit, epoch: head.epoch, to: &writer)
        writer.bytes.removeLast()
        writer.raw(",\"changed\":")
        writer.bool(commit.isChange)
        writer.byte(UInt8(ascii: "}"))
        return .json(.ok, writer.bytes, style: style, head: head)
    }

    private func applied(_ response: Response, _ wait: Wait?) -> Response {
        guard let seconds = wait?.applied else { return response }
        var response = response
        response.fields[.preferenceApplied] = "wait=\(seconds)"
        return response
    }

    static func write(_ commit: Commit, epoch: Epoch, to writer: inout JSONWriter) {
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        writer.key("version", &isFirst)
        writer.integer(commit.version)
        writer.key("cursor", &isFirst)
        writer.string(Cursor(epoch, commit.version).description)
        writer.key("time", &isFirst)
        writer.string(text(commit.time))
        writer.key("id", &isFirst)
        writer.string(commit.id)
        if let cause = commit.cause {
            writer.key("cause", &isFirst)
            writer.string(cause)
        }
        if let root = commit.root {
            writer.key("root", &isFirst)
            writer.string(root)
        }
        writer.key("action", &isFirst)
        writer.raw(commit.action)
        writer.key("patch", &isFirst)
        writer.raw(commit.patch)
        writer.byte(UInt8(ascii: "}"))
    }

    /// RFC 3339 with milliseconds.
    private static func text(_ time: Timestamp) -> String {
        // The formatter would cut a fraction that no Double holds: it sees whole seconds only.
        let (seconds, rest) = time.milliseconds.quotientAndRemainder(dividingBy: 1000)
        let whole = rest < 0 ? seconds - 1 : seconds
        let fraction = String(time.milliseconds - whole * 1000 + 1000).dropFirst()
        return "\(Date(timeIntervalSince1970: Double(whole)).formatted(.iso8601).dropLast()).\(fraction)Z"
    }
}

/// Why a position cannot be followed from.
package enum LostCursor: String, Sendable {
    /// It belongs to another history.
    case lost = "cursor-lost"
    /// What comes after it is no longer kept.
    case expired = "cursor-expired"
}
