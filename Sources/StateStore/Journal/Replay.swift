package import StateJSON

/// A state that follows a history by running today's reducers on the recorded actions.
///
/// No middleware and no effect runs: the journal records the actions that have reached the reducers.
package struct Replay: HistoryFollower {
    private let domain: CompiledDomain
    private(set) var state: StateBox
    private var tree: JSONTree
    /// The recorded schedule, and in a fork what its commits schedule; neither dispatches anything.
    private(set) var schedule: ActionSchedule
    /// The patch of the last commit; its memory is that of each commit.
    private var patch = JSONPatch()
    package private(set) var version: Version
    private(set) var changes: ScheduleChanges?

    package init(_ domain: CompiledDomain, from recorded: [UInt8], version: Version) throws(JSONFault) {
        self.domain = domain
        let saved = try SavedState(saved: recorded)
        state = try domain.state(from: saved.state)
        tree = try domain.tree(of: state)
        schedule = saved.schedule
        self.version = version
    }

    /// Runs the reducers on the recorded actions; for an upgrade or a restored state, which no reducer handles, it applies the
    /// recorded patch.
    ///
    /// The cost is that of the original commit; where a patch is applied, it is O(n) in the size of the state.
    ///
    /// - Throws: ``HistoryFault``; the state then is as it was.
    package mutating func take(_ recorded: Commit) throws(HistoryFault) -> Commit {
        try take(recorded, nil, scheduling: nil)
    }

    /// Runs the reducers within the work of one transaction; a nil `begin` keeps the schedule of the record.
    mutating func take(
        _ recorded: Commit, _ work: WorkMeter?, scheduling begin: ((ActionSchedule) -> ScheduleStep)?
    ) throws(HistoryFault) -> Commit {
        let isPatch = recorded.isOfPatchAlone
        let scheduling = isPatch || begin == nil ? nil : Scheduling()
        let next = isPatch ? try apply(recorded) : try reduce(recorded, work, scheduling)
        var changes = recorded.schedule
        if let scheduling, var step = begin?(schedule) {
            if let (name, reason) = recorded.schedule?.ended { step.remove(name, reason) }
            do throws(Rejection) {
                for request in scheduling.all { try step.make(request, of: domain) }
            } catch {
                throw HistoryFault(recorded, rejectionCode: error.code, error.detail)
            }
            changes = step.changes.isEmpty ? nil : ScheduleChanges(step.changes)
        }
        (state, tree) = next
        schedule.apply(changes)
        (version, self.changes) = (recorded.version, changes)
        return recorded.with(patch: patch.text, changedPointers: patch.changedPointers)
    }

    package func bytes() throws -> [UInt8] { SavedState(try tree.encoded(), schedule).bytes }

    func value(at pointer: JSONPointer) throws -> JSONValue? {
        try tree.selected(pointer.tokens[...]).bytes.map { try JSONValue(parsing: $0, depthMax: 1000) }
    }

    private mutating func reduce(
        _ recorded: Commit, _ work: WorkMeter?, _ scheduling: Scheduling?
    ) throws(HistoryFault) -> (StateBox, JSONTree) {
        let node: JSONNode
        do throws(JSONFault) {
            node = JSONNode(try JSONDocument(recorded.action, depthMax: 1000))
        } catch {
            throw HistoryFault(recorded, "the action cannot be read: \(error.detail)")
        }
        let actions = try (node.elements ?? [node]).map { (element) throws(HistoryFault) in
            try action(element, of: recorded)
        }
        var next = state
        for (index, (action, entry, id)) in actions.enumerated() {
            guard !entry.isCommand else {
                throw HistoryFault(
                    recorded, type: entry.type, "today this type is a command, and commands are not committed")
            }
            let context = ReducerContext(
                subject: recorded.by, name: ActionName(of: recorded, own: id, index: index), work: work,
                schedule: schedule, scheduling: scheduling)
            do throws(Rejection) {
                try entry.reduce(&next, action, context)
            } catch {
                throw HistoryFault(
                    recorded, type: entry.type, rejectionCode: error.code,
                    "today's domain rejects the action with \(error.code): \(error.detail)")
            }
        }
        do {
            let entries = actions.map(\.entry)
            return (next, try domain.tree(of: next, after: tree, by: entries, JSONEncodingSession(), into: &patch))
        } catch {
            throw HistoryFault(recorded, "the state that today's reducers make cannot be encoded as JSON: \(error)")
        }
    }

    private func action(
        _ node: JSONNode, of recorded: Commit
    ) throws(HistoryFault) -> (action: any Action, entry: ActionEntry, id: String?) {
        guard let members = node.members, let type = members.first(where: { $0.key == "type" })?.value.string else {
            throw HistoryFault(recorded, "the recorded action has no type")
        }
        guard let entry = domain.entry(ofType: type) else {
            throw HistoryFault(recorded, type: type, "today's domain has no action of this type")
        }
        do throws(PayloadFaults) {
            let action = try entry.actionType.decode(members.first { $0.key == "payload" }?.value)
            return (action, entry, members.first { $0.key == "id" }?.value.string)
        } catch {
            throw HistoryFault(
                recorded, type: type,
                "today's action of this type has another form: \(error.first.pointer): \(error.first.detail)")
        }
    }

    private mutating func apply(_ recorded: Commit) throws(HistoryFault) -> (StateBox, JSONTree) {
        do {
            let before = try tree.encoded()
            var upgraded = PatchedState(try JSONValue(parsing: before, depthMax: 1000), version: version)
            _ = try upgraded.take(recorded)
            let next = try domain.state(from: upgraded.value.text)
            patch.begin()
            let nextTree = try domain.tree(of: next)
            patch.compare(before, try nextTree.encoded())
            return (next, nextTree)
        } catch let fault as HistoryFault {
            throw fault
        } catch let fault as JSONFault {
            throw HistoryFault(
                recorded, at: fault.pointer, "the state of its patch does not fit today's domain: \(fault.detail)")
        } catch {
            throw HistoryFault(recorded, "the state of its patch cannot be encoded as JSON: \(error)")
        }
    }
}
