/// What a commit leads to: its follow-ups and effects.
struct Consequence: Sendable {
    /// An action whose effects start or end.
    struct Effect: Sendable {
        let entry: ActionEntry
        let action: any Action
    }

    /// The ``Snapshot`` of the commit, without the type of its state: Swift looks up the metadata of a generic element
    /// type at each access to a list.
    let snapshot: any AnySnapshot
    /// What middleware and creators have dispatched in the transaction.
    let followUps: [FollowUp]
    let effects: [Effect]
}
