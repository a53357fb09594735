package import StateJSON
internal import Synchronization

/// The faults of a domain's declaration, for which a store does not start.
public struct DeclarationFault: Error, Sendable, CustomStringConvertible {
    /// One sentence for each fault, separated by semicolons.
    public var description: String

    package init(description: String) { self.description = description }
}

package final class CompiledDomain: Sendable {
    let codec: any PartCodec<StateBox>
    private let entries: [String: ActionEntry]
    private let entriesByType: [ObjectIdentifier: ActionEntry]
    private let views: [String: CompiledView]
    /// Records which view is being computed, if a crash concerns it.
    private let viewMark = Mutex<ReductionMark?>(nil)
    let initialViewVersions: [Version]
    let loads: LoadCount
    package let catalogue: Catalogue
    let hooks: DomainHooks
    package var failure: @Sendable () -> DomainFailure? { hooks.failure }
    package var takesAnyState: Bool { hooks.takesAnyState }
    package let initial: StateBox

    /// Throws for a part of the state that is undeclared or declared twice, and for two Swift types of one action type.
    package convenience init<D: Domain>(_ domain: D) throws(DeclarationFault) {
        var declaration = Declaration<D.State>()
        domain.reducer.declare(in: &declaration)
        try self.init(declaration.boxed())
    }

    private init(_ declaration: Declaration<StateBox>) throws(DeclarationFault) {
        var (codec, faults) = declaration.codec()
        var drafts: [String: ActionEntryDraft] = [:]
        for handler in declaration.handlers {
            guard let actionType = handler.actionType else { continue }
            let type = actionType.name
            var entry = drafts[type] ?? ActionEntryDraft(actionType: actionType)
            if entry.actionType.identity != actionType.identity {
                faults.append(
                    "the action type \"\(type)\" is both \(entry.actionType.description) and \(actionType.description)")
            }
            if type.isEmpty || type.contains(where: { $0 == "," || $0.isWhitespace }) {
                faults.append(
                    "\(actionType.description) has the type \"\(type)\": one without commas and spaces is needed")
            }
            if type.hasPrefix(OwnTypes.prefix), !OwnTypes.handled.contains(type) {
                faults.append(
                    "\(actionType.description) has the type \"\(type)\": \(OwnTypes.prefix) is the store's own")
            }
            entry.homes.insert(handler.home ?? handler.scope)
            switch handler.work {
            case .reduce: break
            case .create(let create): entry.creators.append(create)
            case .effect(let id, let start): entry.effects.append((id, start))
            }
            drafts[type] = entry
        }
        drafts.merge(OwnTypes.drafts()) { $1 }
        // In the order of the declaration, where a handler of every action stands among the others.
        for handler in declaration.handlers {
            guard case .reduce = handler.work else { continue }
            let types = handler.actionType.map { [$0.name] }
            for type in types ?? drafts.filter({ $0.value.takesAnyHandler($0.key) }).map(\.key) {
                drafts[type]?.reducers.append(handler)
            }
        }
        for (type, entry) in drafts where !entry.creators.isEmpty && !(entry.reducers.isEmpty && entry.effects.isEmpty)
        {
            faults.append("\"\(type)\" is a command, so nothing of it is committed: no reducer or effect can handle it")
        }
        let views = Dictionary(declaration.views.map { ($0.name, $0) }) { first, _ in
            faults.append("there are two views named \"\(first.name)\"")
            return first
        }
        guard var initial = declaration.initial else { preconditionFailure("a declaration in a box has its state") }
        do throws(Rejection) {
            let context = ReducerContext(subject: nil)
            for handler in drafts[StoreInit.type]?.reducers ?? [] {
                if case .reduce(let reduce) = handler.work { try reduce(&initial, StoreInit(), context) }
            }
        } catch { faults.append("\(StoreInit.type) is rejected: \(error.detail)") }
        var tree = JSONTree.emptyObject
        do {
            tree = try codec.tree(of: initial)
            // Entities are encoded when somebody reads them.
            _ = try tree.encoded()
        } catch { faults.append("the initial state cannot be encoded: \(error)") }
        for view in declaration.views {
            for pointer in view.reads where !tree.declares(pointer) {
                faults.append("the view \"\(view.name)\" reads \(pointer), which the domain does not declare")
            }
            if case .declared(let schema, _)? = view.parameters,
                let fault = ViewParameters.fault(in: schema, ofView: view.name)
            {
                faults.append(fault)
            }
        }
        guard faults.isEmpty else { throw DeclarationFault(description: faults.joined(separator: "; ")) }
        self.codec = codec
        hooks = declaration.hooks
        let loads = LoadCount()
        self.loads = loads
        let memos = views.values.sorted { $0.name < $1.name }.enumerated().map { CompiledView($1, number: $0, loads) }
        self.views = Dictionary(uniqueKeysWithValues: memos.map { ($0.view.name, $0) })
        initialViewVersions = Array(repeating: 0, count: memos.count)
        let ordered = drafts.sorted { $0.key < $1.key }
        let reads = memos.map { ActionEntry.Reads(view: $0.number, pointers: $0.view.reads) }
        let entries = ordered.enumerated().map { ActionEntry($1.key, $1.value, of: codec, number: $0, reads: reads) }
        self.entries = Dictionary(uniqueKeysWithValues: entries.map { ($0.type, $0) })
        entriesByType = Dictionary(uniqueKeysWithValues: entries.map { ($0.actionType.identity, $0) })
        self.initial = initial
        let open = self.entries.filter { !OwnTypes.isHidden($0.key) }
        let whole = Scope(
            name: "", pointer: .root, entries: Array(open.values),
            views: Dictionary(uniqueKeysWithValues: views.keys.map { ($0, $0) }))
        let parts = declaration.slices.map { slice in
            let name = slice.joined(separator: ".")
            let own = open.filter { $0.value.homes.allSatisfy { $0.starts(with: slice) } }
            let inside = views.keys.filter { $0.hasPrefix(name + ".") }
            return Scope(
                name: name, pointer: JSONPointer(slice), entries: Array(own.values),
                views: Dictionary(uniqueKeysWithValues: inside.map { (String($0.dropFirst(name.count + 1)), $0) }))
        }
        catalogue = Catalogue(
            whole: whole, stores: parts, views: views, collections: declaration.collections,
            parts: declaration.allParts)
    }

    func entry(of action: any Action) -> ActionEntry? { entriesByType[action.typeIdentity] }

    /// Nil for a type that the domain does not declare; the store's own types have entries, too.
    func entry(ofType type: String) -> ActionEntry? { entries[type] }

    func action(of node: JSONNode) throws(Rejection) -> any Action {
        let type = ScheduledAction.member("type", of: node) ?? ""
        guard !OwnTypes.isHidden(type), let entry = entries[type] else { throw .unknownAction(type) }
        do throws(PayloadFaults) {
            return try entry.actionType.decode(node.members?.first { $0.key == "payload" }?.value)
        } catch {
            throw Rejection(
                "invalid-action", "the action \(type) has another form: \(error.first.pointer): \(error.first.detail)",
                kind: .invalid)
        }
    }

    /// Reads a scheduled action from its UTF-8 JSON; the `code` is for what is not JSON.
    func action(in bytes: [UInt8], code: String) throws(Rejection) -> (action: any Action, node: JSONNode) {
        let node: JSONNode
        do throws(JSONFault) {
            node = JSONNode(try JSONDocument(bytes, depthMax: 1000))
        } catch { throw Rejection(code, "the action cannot be read: \(error.detail)", kind: .invalid) }
        return (try action(of: node), node)
    }

    package func handles(_ type: String) -> Bool { entries[type] != nil }

    package func startsEffects(_ type: String) -> Bool {
        entries[type]?.effects.contains { $0.start != nil } ?? false
    }

    /// The cost is that of the slices that the reducers can change; the patch's memory is used again.
    func tree(
        of state: StateBox, after earlier: JSONTree, by entries: [ActionEntry], _ encoder: JSONEncodingSession,
        into patch: inout JSONPatch
    ) throws -> JSONTree {
        patch.begin()
        if entries.count == 1 { return try entries[0].step(state, earlier, encoder, &patch) }
        return try ActionEntry.outermost(entries.flatMap(\.scopes)).reduce(earlier) { earlier, scope in
            try codec.step(at: scope[...])(state, earlier, encoder, &patch)
        }
    }

    func mark(by mark: ReductionMark) { viewMark.withLock { $0 = mark } }

    func select(_ selection: Selection, in snapshot: Snapshot, countMax: Int) throws -> SelectedValue {
        switch selection {
        case .pointer(let pointer): return try snapshot.tree.selected(pointer.tokens[...], countMax: countMax)
        case .view(let name, let arguments):
            guard let view = views[name] else { return .nothing }
            guard countMax == .max || view.isQuick(arguments, in: snapshot) else { return .overBudget }
            return .encoded(
                try view.withMemo(for: arguments) { memo in
                    try memo.bytes(in: snapshot, marking: viewMark.withLock(\.self))
                })
        case .hidden: return .nothing
        case .query(let query, of: let base):
            guard countMax == .max else { return .overBudget }
            let answer: [UInt8]?
            if case .pointer(let pointer) = base {
                guard let tree = snapshot.tree(at: pointer) else { return .nothing }
                answer = try query.query.answered(to: tree.visitTexts, tree.memberOrder)
            } else {
                guard let value = try select(base, in: snapshot, countMax: .max).bytes else { return .nothing }
                answer = try query.query.answered(to: { try $0(value) }, nil)
            }
            return answer.map(SelectedValue.encoded) ?? .nothing
        }
    }

    func view(
        _ name: String, parameters: JSONValue? = nil, subject: String? = nil, in snapshot: Snapshot
    ) -> (any Sendable)? {
        guard let view = views[name] else { return nil }
        return view.withMemo(for: view.arguments(parameters, subject: subject)) { memo -> (any Sendable)? in
            memo.value(in: snapshot, marking: viewMark.withLock(\.self)).value
        }
    }

    func number(ofView name: String) -> Int? { views[name]?.number }

    func noteViewVersions(_ viewVersions: inout [Version], changedPointers: [JSONPointer], at version: Version) {
        for memo in views.values
        where memo.view.reads.contains(where: { read in changedPointers.contains(where: read.overlaps) }) {
            viewVersions[memo.number] = version
        }
    }

    /// The cost is that of what the patch touches.
    func state(of snapshot: Snapshot, patchedBy patch: [UInt8]) throws -> (StateBox, JSONTree) {
        var state = snapshot.state
        let patched = try snapshot.tree.applying(patch: try JSONValue(parsing: patch, depthMax: 1000))
        let tree = try codec.read(patched, after: snapshot.tree, into: &state)
        return (state, tree)
    }

    /// The cost is that of what the commit's patch touches.
    func state(of snapshot: Snapshot, following commit: Commit) throws(DomainFailure) -> (StateBox, JSONTree) {
        let next: (state: StateBox, tree: JSONTree)
        do {
            next = try state(of: snapshot, patchedBy: commit.patch)
        } catch {
            throw DomainFailure(
                "domain-mismatch",
                "the commit of version \(commit.version), which another server has recorded, does not fit the domain of this server: \(Self.words(error)); this server needs the program that wrote it"
            )
        }
        if let failure = hooks.declines(next.tree) { throw failure }
        return next
    }

    private static func words(_ error: any Error) -> String {
        switch error {
        case let fault as JSONFault: "at \(fault.place) \(fault.detail)"
        case let mismatch as PatchMismatch: mismatch.detail
        default: "\(error)"
        }
    }

    /// The state that a server goes on from, of the recorded one: with new parts, and as the domain has migrated it.
    ///
    /// The cost is O(n) in the size of the state.
    package func resumed(from bytes: [UInt8]) throws(JSONFault) -> StateBox {
        guard let resume = hooks.resume else { return try state(from: bytes) }
        return .of(try resume(JSONTree(try JSONValue(parsing: bytes, depthMax: 1000))))
    }

    /// The fault for which no server could go on from the initial state, or nil; O(n) in the size of the state.
    package var initialFault: JSONFault? {
        guard hooks.resume != nil, let bytes = try? bytes(of: initial) else { return nil }
        do throws(JSONFault) {
            _ = try resumed(from: bytes)
            return nil
        } catch { return error }
    }

    /// Reads a whole state, as ``Snapshot/whole()`` or an earlier program has written it; O(n) in its size.
    package func state(from bytes: [UInt8]) throws(JSONFault) -> StateBox {
        var state = initial
        try codec.read(JSONNode(JSONDocument(bytes, depthMax: 1000)), into: &state)
        return state
    }

    /// The cost is O(n) in the size of the plain parts.
    func tree(of state: StateBox) throws(JSONFault) -> JSONTree {
        do {
            return try codec.tree(of: state)
        } catch { throw JSONFault(.mismatch, at: .root, "the state cannot be encoded: \(error)") }
    }
}

package indirect enum Selection: Hashable, Sendable {
    case pointer(JSONPointer)
    case view(String, ViewArguments = .none)
    /// A part that the client may not see: it is never there, whatever the state holds.
    case hidden(JSONPointer)
    case query(SelectionQuery, of: Selection)
}
