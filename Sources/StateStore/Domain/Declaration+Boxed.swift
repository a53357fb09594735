internal import StateJSON

/// The layout of the state in a box.
struct BoxNode<Node: LayoutNode>: LayoutNode where Node.Root: Sendable {
    let node: Node

    func write(_ root: StateBox, to writer: inout JSONWriter) throws {
        try node.write(value(of: root), to: &writer)
    }

    func select(_ root: StateBox, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        try node.select(value(of: root), tokens, countMax: countMax)
    }

    func has(_ root: StateBox, _ tokens: ArraySlice<String>) throws -> Bool {
        try node.has(value(of: root), tokens)
    }

    func declares(_ tokens: ArraySlice<String>) -> Bool { node.declares(tokens) }

    func memberOrder(_ tokens: ArraySlice<String>) -> MemberOrder? { node.memberOrder(tokens) }

    func visitTexts(_ root: StateBox, _ tokens: ArraySlice<String>, _ take: ([UInt8]) throws -> Void) throws {
        try node.visitTexts(value(of: root), tokens, take)
    }

    func count(_ root: StateBox) -> Int { node.count(value(of: root)) }

    func compare(_ old: StateBox, _ new: StateBox, into patch: inout JSONPatch) throws {
        try node.compare(value(of: old), value(of: new), into: &patch)
    }

    func comparison(at place: ArraySlice<String>) -> Comparison<StateBox> {
        Box.comparison(node.comparison(at: place))
    }

    func read(_ json: JSONNode, into root: inout StateBox) throws(JSONFault) {
        var state = value(of: root)
        try node.read(json, into: &state)
        root = .of(state)
    }

    func apply(_ operations: [PatchOperation], to root: inout StateBox) throws {
        var state = value(of: root)
        try node.apply(operations, to: &state)
        root = .of(state)
    }

    @inline(__always)
    private func value(of root: StateBox) -> Node.Root { root.box(of: Node.Root.self).value }
}

extension Declaration where State: StateType {
    /// The declaration of the same state in a box.
    func boxed() -> Declaration<StateBox> {
        var boxed = Declaration<StateBox>()
        let (layout, faults) = layout()
        let (views, unread) = resolvedViews()
        boxed.faults = faults + unread
        boxed.whole = Self.boxed(layout)
        boxed.initial = .of(initial ?? State())
        (boxed.slices, boxed.collections, boxed.parts) = (slices, collections, allParts)
        (boxed.failure, boxed.takesAnyState) = (failure, takesAnyState)
        boxed.views = views.map { $0.boxed() }
        boxed.handlers = handlers.map { handler in
            .init(
                type: handler.type, actionType: handler.actionType, scope: handler.scope, home: handler.home,
                apply: Box.reducer(handler.apply))
        }
        boxed.commands = commands.map { command in
            .init(type: command.type, actionType: command.actionType, scope: command.scope) {
                [create = command.create] (box, action) throws(Rejection) in try create(box.state(), action)
            }
        }
        boxed.effects = effects.map { effect in
            let start = effect.start.map { start in
                { @Sendable (action: any Action, box: StateBox) in start(action, box.state()) }
            }
            return .init(
                type: effect.type, actionType: effect.actionType, scope: effect.scope, id: effect.id, start: start)
        }
        if let reload { boxed.reload = { try reload($0.state()) } }
        if let declines { boxed.declines = { declines($0.state()) } }
        if let resume { boxed.resume = { (bytes) throws(JSONFault) in .of(try resume(bytes)) } }
        return boxed
    }

    private static func boxed(_ layout: some LayoutNode<State>) -> any LayoutNode<StateBox> { BoxNode(node: layout) }
}
