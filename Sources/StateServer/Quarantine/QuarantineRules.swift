internal import StateStore

/// The rules of the list: the first end of a server makes an action or a view suspected, the second sets it aside.
extension [QuarantineEntry] {
    private static var countMax: Int { 1000 }

    private static var suspicionTime: Duration { .seconds(3600) }

    private func index(of record: MarkPage.Record) -> Int? { firstIndex { $0.identity == record.identity } }

    private mutating func add(_ record: MarkPage.Record, server: String? = nil, tried: QuarantineEntry.Trial? = nil) {
        removeAll { $0.state == .suspected && $0.age > Self.suspicionTime }
        if count >= Self.countMax { remove(at: firstIndex { $0.state == .suspected } ?? 0) }
        append(QuarantineEntry(record, server: server, tried: tried))
    }

    private mutating func setAside(_ index: Int, version: Version? = nil) {
        var entry = remove(at: index)
        (entry.state, entry.tried, entry.version) = (.quarantined, nil, version ?? entry.version)
        entry.crashes += 1
        append(entry)
    }

    mutating func recordEnd(during record: MarkPage.Record, of server: String?) {
        guard let index = index(of: record) else { return add(record) }
        let entry = self[index]
        guard entry.state == .suspected, entry.tried == nil, server != nil, entry.server == server else {
            return setAside(index, version: record.identity.kind == .view ? record.version : nil)
        }
        // Another server has told of this end already, and will not of the next one.
        self[index].server = nil
    }

    /// Records that a server was lost while it carried out an action that another server had sent to it.
    ///
    /// Many actions are under way then: a suspected one is set aside only where the server had said that it tries it.
    mutating func recordLoss(of server: String, during record: MarkPage.Record) {
        guard let index = index(of: record) else { return add(record, server: server) }
        let trial = self[index].tried
        if self[index].state == .retry || trial?.server == server && trial?.isOnPage == false { setAside(index) }
    }

    /// Records that a server tries a suspected action, before it does.
    ///
    /// A trial of this process has done no harm (an answer was lost); one of an earlier process has ended that process,
    /// unless its page has been read since.
    mutating func begin(_ trial: QuarantineEntry.Trial, of record: MarkPage.Record) -> Quarantine.Verdict {
        guard let index = index(of: record) else {
            add(record, tried: trial)
            return .passes
        }
        switch self[index].state {
        case .quarantined: return .refused(self[index].id)
        case .retry: return .passes
        case .suspected: break
        }
        if let earlier = self[index].tried {
            guard earlier.server == trial.server else { return .isTried }
            guard earlier.isOnPage || earlier.process == trial.process else {
                setAside(index)
                return .refused(self[count - 1].id)
            }
        }
        self[index].tried = trial
        return .passes
    }

    mutating func end(_ trial: QuarantineEntry.Trial, of identity: TransactionIdentity) {
        for index in indices where self[index].identity == identity && self[index].tried == trial {
            self[index].tried = nil
        }
    }

    mutating func setAside(_ identity: TransactionIdentity, triedIn trial: QuarantineEntry.Trial?) {
        guard let trial, let index = firstIndex(where: { $0.identity == identity && $0.tried == trial }) else { return }
        setAside(index)
    }
}
