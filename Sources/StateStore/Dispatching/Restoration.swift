internal import StateJSON

/// An earlier state, or that of a fork, that an action of the type ``Commit/restoreType`` makes the present one.
///
/// No reducer and no middleware runs: the commit has the patch that leads there, and the history goes on.
package struct Restoration: Sendable {
    /// The name by which a client asks for a state.
    package enum Source: Sendable {
        case version(Version)
        case fork(String)
    }

    package let source: Source
    /// The state with its schedule, and with everything that it has in common with the present one; nil until it is looked up.
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

    /// The same transaction with the state that it restores.
    ///
    /// - Parameter base: the version that the store must still have; nil for any.
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
    /// A state of this domain for a ``Restoration``, which shares with the present state what both have in common.
    ///
    /// The cost is O(n) in the size of both states.
    ///
    /// - Throws: ``JSONFault`` with the pointer at which the state does not fit the domain as it is now.
    package func stateToRestore(like past: Snapshot) throws -> Snapshot {
        let present = latest
        let state = try domain.resumed(from: past.whole())
        // The states share their equal parts, so that the turn compares only the rest.
        let shared: (StateBox, JSONTree)
        if let old = present.state.document, let new = state.document {
            let tree = new.sharing(old)
            shared = (.of(JSONState(tree)), tree)
        } else {
            var patch = JSONPatch()
            try JSONTree.compare(present.tree, try domain.tree(of: state), into: &patch)
            shared = try domain.state(of: present, patchedBy: patch.text)
        }
        return Snapshot(shared.0, shared.1, of: domain, at: present.cursor, viewVersions: [], schedule: past.schedule)
    }
}
