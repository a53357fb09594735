internal import StateJSON

/// Applies a history by its recorded patches and by today's reducers, to find the first commit at which they differ.
package struct Verification<State: StateType>: Sendable {
    private let domain: CompiledDomain<State>
    private var recorded: PatchedState
    private var replay: Replay<State>

    /// Begins with the recorded state of a version.
    ///
    /// - Throws: ``JSONFault`` with the pointer at which the state does not fit the domain.
    package init(_ domain: CompiledDomain<State>, from state: [UInt8], version: Version) throws {
        self.domain = domain
        replay = try Replay(domain, from: state, version: version)
        // Today's domain encodes the state, so that both sides have the parts that it has declared since.
        recorded = PatchedState(try JSONValue(parsing: replay.bytes(), depthMax: 1000), version: version)
    }

    /// The version of both states.
    package var version: Version { replay.version }

    /// Applies the next commit to both states and compares them.
    ///
    /// Two patches may differ and lead to the same state. Only values that one of the patches changes can differ, so the
    /// cost is O(n) in the size of these values.
    ///
    /// - Throws: ``HistoryFault`` where the states differ, or where the commit cannot be applied to one of them.
    package mutating func take(_ commit: Commit) throws(HistoryFault) {
        let recordedCommit = try recorded.take(commit)
        let reducedCommit = try replay.take(commit)
        guard reducedCommit.patch != recordedCommit.patch else { return }
        for pointer in recordedCommit.changedPointers + reducedCommit.changedPointers {
            guard let difference = try self.difference(at: pointer, commit) else { continue }
            throw HistoryFault(commit, at: difference, "today's reducers make another state")
        }
    }

    private func difference(at pointer: JSONPointer, _ commit: Commit) throws(HistoryFault) -> JSONPointer? {
        let reduced: JSONValue?
        do {
            reduced = try replay.value(at: pointer)
        } catch {
            throw HistoryFault(commit, at: pointer, "the state that today's reducers make cannot be read: \(error)")
        }
        switch (recorded.value[pointer: pointer], reduced) {
        case (let recorded?, let reduced?):
            return recorded.firstDifference(from: reduced).map { JSONPointer(pointer.tokens + $0.tokens) }
        case (nil, nil): return nil
        default: return pointer
        }
    }

    /// Compares a saved state with the state that the recorded patches have made up to a commit.
    ///
    /// The cost is O(n) in the size of the state.
    ///
    /// - Throws: ``HistoryFault`` where the states differ, or where the saved one does not fit the domain.
    package func compare(saved: [UInt8], after commit: Commit) throws(HistoryFault) {
        let difference: JSONPointer?
        do {
            let state = try domain.bytes(of: domain.state(from: saved))
            difference = recorded.value.firstDifference(from: try JSONValue(parsing: state, depthMax: 1000))
        } catch let fault as JSONFault {
            throw HistoryFault(commit, at: fault.pointer, "the snapshot does not fit the domain: \(fault.detail)")
        } catch {
            throw HistoryFault(commit, "the snapshot cannot be read: \(error)")
        }
        guard let difference else { return }
        throw HistoryFault(commit, at: difference, "the snapshot differs from what the commits make")
    }
}
