/// The follow-ups and effects of a commit.
struct Consequence: Sendable {
    struct Effect: Sendable {
        let entry: ActionEntry
        let action: any Action
    }

    /// The ``Snapshot`` of the commit, without the type of its state: Swift looks up the metadata of a generic element
    /// type at each access to a list.
    let snapshot: any AnySnapshot
    /// The dispatches of middleware and creators in the transaction.
    let followUps: [FollowUp]
    let effects: [Effect]
}
