package import StateJournal

package enum ClusterEvent: Sendable {
    case journal(JournalEvent)
    case waiting(reason: String)
    /// The reason is nil when the turns of other nodes come again.
    case notFollowing(reason: String?)
    case writer(ClusterWriter)
    /// The reason is nil when an etcd has room again.
    case quotaUsed(reason: String?)
    /// The history in etcd is older than this server's; a failure says why it has no new epoch.
    case epochRenewed(failure: String?)
    case olderThanSeen
}

package enum ClusterFault: Error, Sendable, CustomStringConvertible {
    /// No endpoint has carried the request out, and none will.
    case unreachable(String)
    /// An endpoint may have carried it out.
    case unanswered(String)
    /// etcd has refused it, and carried nothing out; the number is that of a gRPC status.
    case refused(Int, String)
    case malformed(String)
    case history(String)

    init(_ description: String) { self = .history(description) }

    package var description: String {
        switch self {
        case .unreachable(let reason): "no etcd can be reached: \(reason)"
        case .unanswered(let reason): "etcd does not answer: \(reason)"
        case .refused(_, let reason): "etcd refuses: \(reason)"
        case .malformed(let reason): "this is not etcd: \(reason)"
        case .history(let reason): reason
        }
    }

    /// May pass without anybody's doing.
    package var isPassing: Bool {
        switch self {
        case .unreachable, .unanswered: true
        case .refused, .malformed, .history: false
        }
    }
}
