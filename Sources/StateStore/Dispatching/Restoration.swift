internal import StateJSON

/// An earlier state, or that of a fork, that becomes the present one.
///
/// No reducer and no middleware runs: the commit has the patch that leads there.
package struct Restoration: Sendable {
    package enum Source: Sendable {
        case version(Version)
        case fork(String)
    }

    package let source: Source
    /// The state with its schedule, which shares with the present one what is equal; nil until it is looked up.
    var state: Snapshot?
    var base: Version?

    package init(_ source: Source) { self.source = source }

    static let moved = Rejection(
        "fork-behind",
        "the fork was made of an earlier version, and the state has changed since: make the fork again, or send If-Match with the ETag of the present state to undo the newer commits, too"
    )
}

extension Transaction {
    package var restoration: Restoration? {
        guard items.count == 1, items[0].entry == nil, case .restore(let restoration) = items[0].content else {
            return nil
        }
        return restoration
    }

    /// The same transaction with the state that it restores, if the store still has the version `base`; nil for any.
    package func restoring(_ state: Snapshot, ifAt base: Version?) -> Transaction {
        var items = items
        if case .restore(var restoration) = items[0].content {
            (restoration.state, restoration.base) = (state, base)
            items[0].content = .restore(restoration)
        }
        return copy(items, wantsRepresentation: wantsRepresentation)
    }
}

extension UntypedStore {
    /// A state of this domain that shares with the present one what both have in common; O(n) in the size of both.
    ///
    /// Throws with the pointer at which the state does not fit the domain.
    package func stateToRestore(like past: Snapshot) throws -> Snapshot {
        let present = latest
        let state = try domain.resumed(from: past.whole())
        // The states share their equal parts, so that the turn compares only the rest.
        let shared: (StateBox, JSONTree)
        if let old = present.state.document, let new = state.document {
            let tree = new.sharing(old)
            shared = (.of(tree), tree)
        } else {
            var patch = JSONPatch()
            try JSONTree.compare(present.tree, try domain.tree(of: state), into: &patch)
            shared = try domain.state(of: present, patchedBy: patch.text)
        }
        return Snapshot(shared.0, shared.1, of: domain, at: present.cursor, viewVersions: [], schedule: past.schedule)
    }
}
