internal import StateJSON

/// The members of a place that commits have touched, with their values.
///
/// All queries on the place share it.
struct MemberChanges: Sendable {
    let members: [ChangedMember]

    /// The most members that are looked at one by one; for more, the whole value is looked at.
    static let countMax = 10_000
    private static let quickBytesMax = 1 << 20

    /// Collects the members; nil if a commit has replaced the place or touched many members, or if their order is unknown.
    ///
    /// The cost is O(n) in the changed pointers of the commits and in the bytes of the members.
    ///
    /// - Parameters:
    ///   - snapshot: the state after the last of the commits.
    ///   - isQuick: whether to give up members of more than a megabyte, on a thread that serves others.
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
