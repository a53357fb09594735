internal import StateJSON

/// A history told twice, by its recorded patches and by today's reducers, to find where the two part.
package struct Verification<State: StateType>: Sendable {
    private let model: CompiledDomain<State>
    private var recorded: PatchedState
    private var replay: Replay<State>

    /// Begins with a recorded state.
    ///
    /// - Throws: ``JSONFault`` with the place where state and domain do not fit.
    package init(_ model: CompiledDomain<State>, from state: [UInt8], version: Version) throws {
        self.model = model
        replay = try Replay(model, from: state, version: version)
        // Written by today's domain: parts that it has come to declare since are there on both sides.
        recorded = PatchedState(try JSONValue(parsing: replay.text(), depthMax: 1000), version: version)
    }

    /// The version that both have reached.
    package var version: Version { replay.version }

    /// Takes the next commit both ways.
    ///
    /// Two patches that lead to the same state are as good as one. What neither patch touches was the same before and still is,
    /// so that only the places that one of them touches are compared.
    ///
    /// - Throws: ``HistoryFault`` where the states differ, or where one of them cannot be made.
    package mutating func take(_ commit: Commit) throws(HistoryFault) {
        let told = try recorded.take(commit)
        let made = try replay.take(commit)
        guard made.patch != told.patch else { return }
        for place in told.changedPointers + made.changedPointers {
            guard let pointer = try difference(at: place, commit) else { continue }
            throw HistoryFault(commit, at: pointer, "today's reducers make another state")
        }
    }

    private func difference(at place: JSONPointer, _ commit: Commit) throws(HistoryFault) -> JSONPointer? {
        let made: JSONValue?
        do {
            made = try replay.value(at: place)
        } catch {
            throw HistoryFault(commit, at: place, "the state that today's reducers make cannot be read: \(error)")
        }
        switch (recorded.value[pointer: place], made) {
        case (let told?, let made?):
            return told.firstDifference(from: made).map { JSONPointer(place.tokens + $0.tokens) }
        case (nil, nil): return nil
        default: return place
        }
    }

    /// Compares a saved state with the one that the recorded patches have made up to a commit.
    ///
    /// O(n).
    ///
    /// - Throws: ``HistoryFault`` where they differ, or where the saved one does not fit the domain.
    package func compare(saved: [UInt8], after commit: Commit) throws(HistoryFault) {
        let difference: JSONPointer?
        do {
            let state = try model.text(of: model.state(from: saved))
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
