internal import StateStore

/// What becomes of an action or a view in the list, each rule a change of the list.
///
/// The first end of a server makes it suspected, the second one sets it aside. What is suspected and then computed without
/// harm leaves the list.
extension [QuarantineFile.Entry] {
    /// How many entries the list has at most; a suspected one makes way for another one first.
    private static var countMax: Int { 1000 }

    /// How long a suspicion counts of which no server has found out that it is wrong.
    private static var suspicionTime: Duration { .seconds(3600) }

    private func index(of record: MarkPage.Record) -> Int? { firstIndex { $0.identity == record.identity } }

    private mutating func add(_ record: MarkPage.Record, _ change: (inout QuarantineFile.Entry) -> Void) {
        removeAll { $0.state == .suspected && $0.age > Self.suspicionTime }
        if count >= Self.countMax { remove(at: firstIndex { $0.state == .suspected } ?? 0) }
        var entry = QuarantineFile.Entry(record)
        change(&entry)
        append(entry)
    }

    /// Moves an entry to the end, where the newest is, as one that is refused.
    private mutating func setAside(_ index: Int, version: Version? = nil) {
        var entry = remove(at: index)
        (entry.state, entry.tried, entry.version) = (.quarantined, nil, version ?? entry.version)
        entry.crashes += 1
        append(entry)
    }

    /// Records that a server has ended while it computed something, as its page says.
    ///
    /// - Parameters:
    ///   - server: the address of that server; nil where it has none.
    ///   - isSuspected: whether the page has said so before.
    /// - Returns: whether it is set aside now.
    mutating func recordEnd(during record: MarkPage.Record, of server: String?, isSuspected: Bool) -> Bool {
        guard let index = index(of: record) else {
            add(record) { entry in
                if !isSuspected { (entry.state, entry.crashes, entry.server) = (.suspected, 1, server) }
            }
            return isSuspected
        }
        let entry = self[index]
        // Another server has told of this end already.
        let isKnown = entry.state == .suspected && entry.tried == nil && server != nil && entry.server == server
        if !isKnown { setAside(index, version: QuarantineFile.Entry(record).version) }
        return !isKnown
    }

    /// Records that a server was lost while it carried out an action that another server had sent to it.
    ///
    /// Many actions are under way at such a moment, and at most a few of them are the reason: one that is suspected is set
    /// aside only where the lost server had said that it tries it.
    mutating func recordLoss(of server: String, during record: MarkPage.Record) {
        guard let index = index(of: record) else {
            return add(record) { ($0.state, $0.crashes, $0.server) = (.suspected, 1, server) }
        }
        if self[index].state == .retry || self[index].tried == server { setAside(index) }
    }

    /// Records that a server tries a suspected action, before it does.
    ///
    mutating func beginTrial(of record: MarkPage.Record, by server: String) -> Quarantine.Verdict {
        guard let index = index(of: record) else {
            add(record) { ($0.state, $0.crashes, $0.tried) = (.suspected, 1, server) }
            return .passes
        }
        switch (self[index].state, self[index].tried) {
        case (.quarantined, _): return .refused(self[index].id)
        case (.retry, _): return .passes
        case (.suspected, nil):
            self[index].tried = server
            return .passes
        case (.suspected, server):
            // This server does not try it now, so it has ended while it did.
            setAside(index)
            return .refused(self[count - 1].id)
        case (.suspected, _): return .isTried
        }
    }

    /// Records that a server has not carried out the action that it was about to try.
    mutating func endTrial(of identity: TransactionIdentity, by server: String) {
        guard let index = firstIndex(where: { $0.identity == identity && $0.tried == server }) else { return }
        self[index].tried = nil
    }

    /// Sets an action aside whose trial has no end.
    mutating func setAside(_ identity: TransactionIdentity) {
        guard let index = firstIndex(where: { $0.identity == identity && $0.tried != nil }) else { return }
        setAside(index)
    }
}
