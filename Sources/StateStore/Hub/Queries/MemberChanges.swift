internal import StateJSON

/// The members of a place that commits have touched, with their values; all queries on the place share them.
struct MemberChanges: Sendable {
    let members: [ChangedMember]

    static let countMax = 10_000
    private static let quickBytesMax = 1 << 20

    /// Nil if a commit has replaced the place or touched many members, or if their order is unknown.
    ///
    /// The cost is O(n) in the changed pointers and the bytes of the members; `isQuick` gives up beyond a megabyte.
    init?(at place: JSONPointer, _ commits: [Commit], in snapshot: Snapshot, isQuick: Bool = false) {
        guard let order = snapshot.tree(at: place)?.memberOrder else { return nil }
        var names: Set<JSONKey> = []
        for commit in commits {
            for pointer in commit.changedPointers where pointer.overlaps(place) {
                guard pointer.tokens.count > place.tokens.count else { return nil }
                names.insert(JSONKey(pointer.tokens[place.tokens.count]))
                guard names.count <= Self.countMax else { return nil }
            }
        }
        var members: [ChangedMember] = []
        var bytesLeft = isQuick ? Self.quickBytesMax : .max
        for name in names {
            guard let key = order(name.text),
                // A committed state can be encoded, and is JSON; without the value, the whole is looked at.
                let selected = try? snapshot.selected(
                    .pointer(place.appending(name.text)), countMax: isQuick ? WatchHub.quickCountMax : .max)
            else { return nil }
            if case .overBudget = selected { return nil }
            bytesLeft -= selected.bytes?.count ?? 0
            guard bytesLeft >= 0, let value = try? selected.bytes.map({ try JSONValue(parsing: $0, depthMax: .max) })
            else { return nil }
            members.append(ChangedMember(name: name, order: key, value: value))
        }
        self.members = members
    }
}
