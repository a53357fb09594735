package import StateJSON

/// Applies a history by its recorded patches, and with a domain also by today's reducers, to find the first commit at
/// which they differ.
package struct Verification: Sendable {
    private var recorded: PatchedState
    private var reduced: (domain: CompiledDomain, replay: Replay)?

    /// Begins with the recorded state of a version; the patches alone are applied.
    package init(from state: [UInt8], version: Version) throws(JSONFault) {
        recorded = try PatchedState(parsing: state, version: version)
    }

    package init(_ domain: CompiledDomain, from state: [UInt8], version: Version) throws {
        let replay = try Replay(domain, from: state, version: version)
        // The recorded spelling stays, because the patches fit it.
        var value = try JSONValue(parsing: SavedState(saved: state).state, depthMax: 1000)
        value.addMembers(of: try JSONValue(parsing: domain.bytes(of: replay.state), depthMax: 1000))
        recorded = PatchedState(value, version: version, schedule: replay.schedule)
        reduced = (domain, replay)
    }

    package var isReduced: Bool { reduced != nil }

    package var version: Version { recorded.version }

    /// The state that the recorded patches have made, as ``SavedState`` has it; O(n) in its size.
    package func bytes() -> [UInt8] { recorded.bytes() }

    /// Applies the next commit to both states and compares them.
    ///
    /// Two patches may differ and lead to the same state. Only values that one of the patches changes can differ, so the
    /// cost is O(n) in the size of these values.
    package mutating func verify(_ commit: Commit) throws(HistoryFault) {
        let recordedCommit = try recorded.take(commit)
        guard let reducedCommit = try reduced?.replay.take(commit), reducedCommit.patch != recordedCommit.patch else {
            return
        }
        for pointer in recordedCommit.changedPointers + reducedCommit.changedPointers {
            guard let difference = try self.difference(at: pointer, commit) else { continue }
            throw HistoryFault(commit, at: difference, "today's reducers make another state")
        }
    }

    private func difference(at pointer: JSONPointer, _ commit: Commit) throws(HistoryFault) -> JSONPointer? {
        let reduced: JSONValue?
        do {
            reduced = try self.reduced?.replay.value(at: pointer)
        } catch {
            throw HistoryFault(commit, at: pointer, "the state that today's reducers make cannot be read: \(error)")
        }
        switch (recorded.value[pointer: pointer], reduced) {
        case (let recorded?, let reduced?):
            guard let difference = recorded.firstDifference(from: reduced),
                respelled(at: pointer).map({ $0 != reduced }) ?? true
            else { return nil }
            return JSONPointer(pointer.tokens + difference.tokens)
        case (nil, nil): return nil
        default: return pointer
        }
    }

    /// The recorded value as today's domain spells it: an earlier build may have spelled it in another way.
    private func respelled(at pointer: JSONPointer) -> JSONValue? {
        guard let domain = reduced?.domain else { return nil }
        // A value can be read as a member of the part of the state that it lies in; of a table, one entity is enough.
        let part = domain.catalogue.parts.first { pointer.tokens.starts(with: $0.pointer.tokens) }
        var place = part?.pointer.tokens ?? []
        if case .entities? = part?.kind { place = Array(pointer.tokens.prefix(place.count + 1)) }
        guard var value = recorded.value[pointer: JSONPointer(place)] else { return nil }
        for token in place.reversed() {
            var object = JSONObject()
            object[token] = value
            value = .object(object)
        }
        // Losing the error is right: the difference is then reported.
        guard let state = try? domain.state(from: value.text),
            let bytes = try? domain.tree(of: state).selected(pointer.tokens[...]).bytes
        else { return nil }
        return try? JSONValue(parsing: bytes, depthMax: 1000)
    }

    /// Compares a saved state with the state that the recorded patches have made up to a commit; O(n) in its size.
    package func compare(saved: [UInt8], after commit: Commit) throws(HistoryFault) {
        let difference: JSONPointer?
        do {
            let saved = try SavedState(saved: saved)
            guard saved.schedule == recorded.schedule else {
                throw HistoryFault(commit, "the snapshot has another schedule than the commits make")
            }
            let state = try spelled(saved.state)
            difference = try recorded.value.firstDifference(from: state).flatMap { difference in
                try reduced != nil && spelled(recorded.value.text) == state ? nil : difference
            }
        } catch let fault as HistoryFault {
            throw fault
        } catch let fault as JSONFault where reduced != nil {
            throw HistoryFault(commit, at: fault.pointer, "the snapshot does not fit the domain: \(fault.detail)")
        } catch {
            throw HistoryFault(commit, "the snapshot cannot be read: \((error as? JSONFault)?.detail ?? "\(error)")")
        }
        guard let difference else { return }
        throw HistoryFault(commit, at: difference, "the snapshot differs from what the commits make")
    }

    /// A state as today's domain spells it, or as it is without a domain.
    private func spelled(_ state: [UInt8]) throws -> JSONValue {
        let bytes = try reduced.map { try $0.domain.bytes(of: $0.domain.state(from: state)) } ?? state
        return try JSONValue(parsing: bytes, depthMax: 1000)
    }
}

extension JSONValue {
    fileprivate mutating func addMembers(of other: JSONValue) {
        guard case .object(var object) = self, case .object(let others) = other else { return }
        for (key, value) in others.members {
            if object[key] == nil { object[key] = value } else { object[key]?.addMembers(of: value) }
        }
        self = .object(object)
    }
}
