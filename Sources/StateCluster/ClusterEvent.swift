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

/// Why a history in etcd cannot be used, as a sentence.
package struct ClusterFault: Error, Sendable, CustomStringConvertible {
    package let description: String
    /// Whether it may pass without anybody's doing.
    package let isPassing: Bool

    init(_ description: String) { (self.description, isPassing) = (description, false) }

    init(_ failure: EtcdFailure) {
        description = "\(failure)"
        isPassing =
            switch failure {
            case .unreachable, .unanswered: true
            case .refused, .malformed: false
            }
    }
}
