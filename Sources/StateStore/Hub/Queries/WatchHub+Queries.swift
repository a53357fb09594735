internal import StateJSON
internal import Synchronization

/// Queries on the members of a place: a commit costs each of them the members that it touches.
extension WatchHub {
    /// The answer in the published snapshot; nil for a selection that is no query on a place.
    func readQuery(_ selection: Selection, keeps: Bool) throws -> Reading? {
        let (latest, indexed) = storage.withLock { ($0.latest, $0.indexedQuery(selection)) }
        guard let indexed, let kept = indexed.kept else { return nil }
        defer { storage.withLock { $0.idles(selection) } }
        return try measured(indexed) {
            try kept.read(in: latest, keeps: keeps, changes(at: kept.place, in: latest))
        }
    }

    /// Whether the answer to a query, and later ones, can be had quickly.
    package func isReadQuickly(_ selection: Selection) -> Bool {
        let (isKnown, kept) = storage.withLock { ($0.encoded(selection) != nil, $0.knownQuery(selection)) }
        guard let kept else { return isKnown }
        return readQueryQuickly(selection) != nil || isKnown && kept.keepsNothing
    }

    func readQueryQuickly(_ selection: Selection) -> Reading? {
        let (latest, kept) = storage.withLock { ($0.latest, $0.knownQuery(selection)) }
        guard let kept, kept.advance(to: latest, changes(at: kept.place, in: latest, isQuick: true)) else { return nil }
        return kept.reading(latest.cursor.epoch)
    }

    /// The members are found once for all queries that ask for the version.
    func changes(
        at place: JSONPointer, in snapshot: Snapshot, isQuick: Bool = false
    ) -> (Version) -> MemberChanges? {
        var known: [Version: MemberChanges?] = [:]
        return { [self] since in
            if let found = known[since] { return found }
            let commits = storage.withLock { $0.commits(after: since, through: snapshot.cursor.version) }
            let found = commits.flatMap { MemberChanges(at: place, $0, in: snapshot, isQuick: isQuick) }
            known[since] = .some(found)
            return found
        }
    }
}
