internal import StateJSON

/// The declarations of one action type, without the type of the state.
final class ActionEntry: Sendable {
    let type: String
    /// An array of just ``type``, which a commit of one action uses without making its own.
    let types: [String]
    let actionType: ActionType
    let number: Int
    let hasEffects: Bool
    let isCommand: Bool
    /// Validates an action of the type; nil for a type that validates nothing.
    let validate: (@Sendable (any Action) throws(Rejection) -> Void)?
    /// The slices that declare a handler, a command or an effect for the action type.
    let homes: Set<[String]>
    /// The slices that the handlers can change, none inside another.
    let scopes: [[String]]
    /// The views that read something in those slices.
    let reads: [Reads]
    /// The ``ActionHandlers``, without the type of their state: Swift looks up the metadata of a generic element type at each
    /// access to a list.
    private let handlers: any AnyObject & Sendable

    struct Reads: Sendable {
        let view: Int
        let pointers: [JSONPointer]

        func overlap(_ changed: [JSONPointer]) -> Bool {
            pointers.contains { pointer in changed.contains { pointer.overlaps($0) } }
        }
    }

    init<State>(_ type: String, _ draft: ActionEntryDraft<State>, number: Int, reads: [Reads]) {
        self.type = type
        types = [type]
        actionType = draft.actionType
        self.number = number
        hasEffects = !draft.effects.isEmpty
        isCommand = !draft.commands.isEmpty
        validate =
            if case .typed(let type) = draft.actionType, let type = type as? any ValidatedAction.Type {
                Self.validator(of: type)
            } else { nil }
        homes = draft.homes
        let scopes = OwnTypes.scheduling.contains(type) ? [] : ActionEntry.outermost(draft.handlers.map(\.scope))
        self.scopes = scopes
        self.reads = reads.filter { $0.overlap(scopes.map { JSONPointer($0) }) }
        handlers = ActionHandlers(draft)
    }

    /// It asks for the type itself, because to look for a protocol's conformance takes long.
    private static func validator<Validated: ValidatedAction>(
        of type: Validated.Type
    ) -> @Sendable (any Action) throws(Rejection) -> Void {
        { action throws(Rejection) in try (action as? Validated)?.validate() }
    }

    /// The functions of the action type in a domain of the state that the entry was made for.
    func handlers<State>(in domain: CompiledDomain<State>) -> ActionHandlers<State> {
        unsafeDowncast(handlers, to: ActionHandlers<State>.self)
    }

    /// The scopes without repetitions, and without those inside another one.
    static func outermost(_ scopes: [[String]]) -> [[String]] {
        var found: [[String]] = []
        for scope in scopes where !found.contains(scope) {
            if !scopes.contains(where: { $0.count < scope.count && scope.starts(with: $0) }) { found.append(scope) }
        }
        return found
    }
}

struct ActionEntryDraft<State: Sendable> {
    let actionType: ActionType
    var handlers: [Declaration<State>.Handler] = []
    var commands: [Declaration<State>.CommandHandler] = []
    var effects: [Declaration<State>.EffectHandler] = []
    var homes: Set<[String]> = []

    /// Whether a handler of every action handles actions of this type, too.
    func takesAnyHandler(_ type: String) -> Bool { commands.isEmpty && !type.hasPrefix(OwnTypes.prefix) }
}

final class ActionHandlers<State: Sendable>: Sendable {
    let reduce: @Sendable (inout State, any Action, ReducerContext) throws(Rejection) -> Void
    let creators: [@Sendable (State, any Action) throws(Rejection) -> (any Action)?]
    let effects: [Declaration<State>.EffectHandler]

    init(_ draft: ActionEntryDraft<State>) {
        let handlers = draft.handlers
        // Nearly every action has one reducer; a function that comes from a list is wrapped once more.
        if handlers.count == 1 {
            reduce = handlers[0].apply
        } else {
            reduce = { (state, action, context) throws(Rejection) in
                for handler in handlers { try handler.apply(&state, action, context) }
            }
        }
        creators = draft.commands.map(\.create)
        effects = draft.effects
    }
}
