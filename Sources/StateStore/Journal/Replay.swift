package import StateJSON

/// A state that follows a history by running today's reducers on the recorded actions.
///
/// No middleware and no effect runs: what is recorded is what has reached the reducers.
package struct Replay<State: StateType>: HistoryFollower {
    private let model: CompiledDomain<State>
    private var state: State
    /// What is known of its encoding.
    private var texts = KnownTexts()
    package private(set) var version: Version

    /// Begins with a recorded state.
    ///
    /// - Throws: ``JSONFault`` with the place where state and domain do not fit.
    package init(_ model: CompiledDomain<State>, from recorded: [UInt8], version: Version) throws(JSONFault) {
        self.model = model
        state = try model.state(from: recorded)
        self.version = version
    }

    /// Reduces the recorded actions, all as one; the upgrade of a state, which no reducer handles, takes its patch.
    ///
    /// It costs what the commit has cost, and an upgrade as much as the state holds.
    package mutating func take(_ recorded: Commit) throws(HistoryFault) -> Commit {
        let isUpgrade = recorded.types == [Commit.upgradeType]
        if isUpgrade { texts = KnownTexts() }
        let (next, patch) = isUpgrade ? try upgrade(recorded) : try reduce(recorded)
        state = next
        version = recorded.version
        return recorded.with(patch: patch.text, changedPointers: patch.changedPointers)
    }

    package func text() throws -> [UInt8] { try model.text(of: state) }

    /// The value at a place, or nil where there is nothing.
    func value(at pointer: JSONPointer) throws -> JSONValue? {
        try model.layout.select(state, pointer.tokens[...]).map { try JSONValue(parsing: $0, depthMax: 1000) }
    }

    private mutating func reduce(_ recorded: Commit) throws(HistoryFault) -> (State, JSONPatch) {
        let actions = try actions(of: recorded)
        var next = state
        var entries: [ActionEntry] = []
        for action in actions {
            let type = type(of: action).type
            guard let entry = model.entry(of: action) else {
                throw HistoryFault(recorded, type: type, "today's domain has no action of this type")
            }
            guard !entry.isCommand else {
                throw HistoryFault(recorded, type: type, "today a command has this type, of which nothing is committed")
            }
            do throws(Rejection) {
                try model.reduce(&next, action, by: entry)
            } catch {
                throw HistoryFault(
                    recorded, type: type,
                    "today's domain rejects the action with \(error.code): \(error.detail)")
            }
            entries.append(entry)
        }
        do {
            return (next, try model.patch(from: state, to: next, by: entries, knowing: &texts))
        } catch {
            throw HistoryFault(recorded, "the state that today's reducers make cannot be encoded as JSON: \(error)")
        }
    }

    private func actions(of recorded: Commit) throws(HistoryFault) -> [any Action] {
        let node: JSONNode
        do throws(JSONFault) {
            node = JSONNode(try JSONDocument(recorded.action, depthMax: 1000))
        } catch {
            throw HistoryFault(recorded, "the action cannot be read: \(error.detail)")
        }
        var actions: [any Action] = []
        for element in node.elements ?? [node] { actions.append(try action(element, of: recorded)) }
        return actions
    }

    private func action(_ node: JSONNode, of recorded: Commit) throws(HistoryFault) -> any Action {
        guard let members = node.members, let type = members.first(where: { $0.key == "type" })?.value.string else {
            throw HistoryFault(recorded, "an action without a type is recorded")
        }
        guard let actionType = model.actionType(of: type) else {
            throw HistoryFault(recorded, type: type, "today's domain has no action of this type")
        }
        do throws(JSONFault) {
            return try actionType.decode(payload: members.first { $0.key == "payload" }?.value)
        } catch {
            throw HistoryFault(
                recorded, type: type, "today's action of this type has another form: \(error.pointer): \(error.detail)")
        }
    }

    private func upgrade(_ recorded: Commit) throws(HistoryFault) -> (State, JSONPatch) {
        do {
            let before = try text()
            var upgraded = PatchedState(try JSONValue(parsing: before, depthMax: 1000), version: version)
            _ = try upgraded.take(recorded)
            let next = try model.state(from: upgraded.text())
            var patch = JSONPatch()
            patch.compare(before, try model.text(of: next))
            return (next, patch)
        } catch let fault as HistoryFault {
            throw fault
        } catch let fault as JSONFault {
            throw HistoryFault(
                recorded, at: fault.pointer, "the upgraded state does not fit today's domain: \(fault.detail)")
        } catch {
            throw HistoryFault(recorded, "the upgraded state cannot be encoded as JSON: \(error)")
        }
    }
}
