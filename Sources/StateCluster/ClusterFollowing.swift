package import StateJournal
internal import StateStore
internal import Synchronization

extension ClusterJournal {
    package func follow(_ appended: @escaping @Sendable () -> Void) {
        condition.withLock { $0.follower = appended }
    }

    func take(_ event: TurnFollower.Event) {
        switch event {
        case .turn(let first, let value):
            guard first <= known.withLock({ $0.tip.version + 1 }) else {
                catchUp()
                break
            }
            do {
                try note(first, value)
            } catch { end("\(error)") }
        case .missed:
            catchUp()
            for document in condition.withLock({ $0.documents }) {
                do throws(ClusterFault) {
                    try document.follow()
                } catch {
                    report(.notFollowing(reason: "\(error)"))
                }
            }
        case .document(let key, let content):
            let (document, watcher) = condition.withLock { condition in
                (condition.documents.first { key.elementsEqual($0.key.utf8) }, condition.documentsWatcher)
            }
            guard let document else { break }
            document.note(content)
            watcher?()
        case .deleted(let first):
            // Snapshots replace older turns only.
            if first >= known.withLock({ $0.tipKey }) { end("its newest turn is deleted") }
        case .replaced(let detail): end(detail)
        case .failing(let reason?):
            condition.withLock { $0.failure = $0.failure ?? "it does not follow etcd: \(reason)" }
            report(.notFollowing(reason: reason))
        case .failing(nil):
            probe()
            report(.notFollowing(reason: nil))
        }
    }

    func end(_ detail: String) {
        guard condition.withLock({ $0.broken == nil }) else { return }
        report(.notFollowing(reason: breaks(detail)))
    }

    private func note(_ first: Version, _ value: [UInt8]) throws(ClusterFault) {
        // An append of this node may land while the turn is verified: then it is known, or has another tip to follow.
        var isTaken = false
        while !isTaken {
            let tip = try known.withLock { (known) throws(ClusterFault) in try known.tip(before: first, value) }
            guard let tip else { return }
            let turn = try RecordedTurn(first, value, after: tip, epoch)
            isTaken = known.withLock { known in
                known.dropKeys(expiredAt: .now())
                return known.take(turn, after: tip)
            }
        }
        notifyFollower()
    }

    func notifyFollower() { condition.withLock(\.follower)?() }

    /// The client of the appends reads for a nil `reader`, because they need what is behind the tip.
    @discardableResult
    func catchUp(by reader: StoredHistory? = nil) -> Bool {
        do {
            let tip = known.withLock { $0.tip.version }
            try (reader ?? stored).forEachTurn(from: tip + 1) { first, value in
                do {
                    try note(first, value)
                    return true
                } catch {
                    end("\(error)")
                    return false
                }
            }
            return true
        } catch {
            report(.notFollowing(reason: "\(error)"))
            return false
        }
    }

    /// Waits for an etcd that does not answer, and throws where etcd refuses.
    package func document(_ name: String) throws -> ClusterDocument {
        let document = ClusterDocument(documentClient, keys, name)
        condition.withLock { $0.documents.append(document) }
        try whenReached { try document.follow() }
        return document
    }

    /// The thread that follows etcd calls it.
    package func watchDocuments(_ changed: @escaping @Sendable () -> Void) {
        condition.withLock { $0.documentsWatcher = changed }
    }
}

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
