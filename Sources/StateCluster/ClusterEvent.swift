/// An event in a cluster's journal that an operator may want to know.
package enum ClusterEvent: Sendable {
    /// Commits could not be appended; where `isOpen`, whether they are in the journal is not known.
    case appendFailed(reason: String, isOpen: Bool)
    /// The journal takes commits again.
    case appendsAgain
    /// A snapshot could not be saved. No commit is lost; the next start takes longer.
    case snapshotNotSaved(reason: String)
    /// The start waits for etcd.
    case waiting(reason: String)
    /// The turns of other nodes do not come; the reason is nil when they come again.
    case notFollowing(reason: String?)
    /// Another server writes by choice than before.
    case writer(ClusterWriter)
    /// An etcd has used much of its quota, or, where the reason is nil, has room again.
    case quotaUsed(reason: String?)
    /// The history in etcd is older than the one of this server, and has another epoch now, or why it has not.
    case epochRenewed(failure: String?)
    /// At a start the history is older than what this server has seen of it, and has got a new epoch.
    case olderThanSeen
}

/// Why a history in etcd cannot be used, or what has become of a request to etcd, as a sentence.
package enum ClusterFault: Error, Sendable, CustomStringConvertible {
    /// No endpoint has carried the request out, and none will.
    case unreachable(String)
    /// An endpoint may have carried it out.
    case unanswered(String)
    /// etcd has refused it, and carried nothing out; the number is that of a gRPC status.
    case refused(Int, String)
    /// The answer is not one of etcd.
    case malformed(String)
    /// The history is not there, or not as it has to be.
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

    /// Whether it may pass without anybody's doing.
    package var isPassing: Bool {
        switch self {
        case .unreachable, .unanswered: true
        case .refused, .malformed, .history: false
        }
    }
}
