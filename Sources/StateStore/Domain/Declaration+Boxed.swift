internal import StateJSON

struct BoxCodec<Codec: PartCodec>: PartCodec where Codec.Part: Sendable {
    let codec: Codec

    func tree(of box: StateBox, after earlier: JSONTree?, _ encoder: JSONEncodingSession) throws -> JSONTree {
        try codec.tree(of: value(of: box), after: earlier, encoder)
    }

    func step(at place: ArraySlice<String>) -> TreeStep<StateBox> { Box.step(codec.step(at: place)) }

    func read(_ json: JSONNode, into box: inout StateBox) throws(JSONFault) {
        var state = value(of: box)
        try codec.read(json, into: &state)
        box = .of(state)
    }

    func read(_ tree: JSONTree, after earlier: JSONTree, into box: inout StateBox) throws -> JSONTree {
        var state = value(of: box)
        let tree = try codec.read(tree, after: earlier, into: &state)
        box = .of(state)
        return tree
    }

    @inline(__always)
    private func value(of box: StateBox) -> Codec.Part { box.box(of: Codec.Part.self).value }
}

extension Declaration where State: StateType {
    func boxed() -> Declaration<StateBox> {
        var boxed = Declaration<StateBox>()
        let (codec, faults) = codec()
        let (views, unread) = resolvedViews()
        boxed.faults = faults + unread
        boxed.whole = Self.boxed(codec)
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

    private static func boxed(_ codec: some PartCodec<State>) -> any PartCodec<StateBox> { BoxCodec(codec: codec) }
}
