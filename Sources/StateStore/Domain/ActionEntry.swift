internal import StateJSON

/// What is known of a type of action, whatever the type of the state.
final class ActionEntry: Sendable {
    let type: String
    /// The same, as the types of a commit of one such action.
    let types: [String]
    let actionType: any Action.Type
    /// Its place among the model's entries.
    let number: Int
    let hasEffects: Bool
    /// Whether the action only makes other actions.
    let isCommand: Bool
    /// The slices in which anything handles it.
    let homes: Set<[String]>
    /// The slices that the handlers can change, none inside another.
    let scopes: [[String]]
    /// What is read by views in those slices.
    let reads: [Reads]

    /// What a view looks at.
    struct Reads: Sendable {
        /// The view's number.
        let view: Int
        let places: [JSONPointer]

        func overlap(_ place: JSONPointer) -> Bool { places.contains(where: place.overlaps) }
    }

    init<State>(_ type: String, _ draft: ActionEntryDraft<State>, number: Int, reads: [Reads]) {
        self.type = type
        types = [type]
        actionType = draft.actionType
        self.number = number
        hasEffects = !draft.effects.isEmpty
        isCommand = !draft.commands.isEmpty
        homes = draft.homes
        let scopes = ActionEntry.outermost(draft.handlers.map(\.scope))
        self.scopes = scopes
        self.reads = reads.filter { reads in scopes.contains { reads.overlap(JSONPointer($0)) } }
    }

    /// Without repetitions, and without what lies inside another.
    static func outermost(_ scopes: [[String]]) -> [[String]] {
        var found: [[String]] = []
        for scope in scopes where !found.contains(scope) {
            if !scopes.contains(where: { $0.count < scope.count && scope.starts(with: $0) }) { found.append(scope) }
        }
        return found
    }
}

/// What a domain declares for one type of action.
struct ActionEntryDraft<State: Sendable> {
    let actionType: any Action.Type
    var handlers: [Declaration<State>.Handler] = []
    var commands: [Declaration<State>.CommandHandler] = []
    var effects: [Declaration<State>.EffectHandler] = []
    var homes: Set<[String]> = []
}

/// What a domain does with one type of action.
final class ActionHandlers<State: Sendable>: Sendable {
    let reducers: [@Sendable (inout State, any Action) throws(Rejection) -> Void]
    /// Creators of other actions; the first that makes one speaks for all.
    let creators: [@Sendable (State, any Action) throws(Rejection) -> (any Action)?]
    let effects: [Declaration<State>.EffectHandler]

    init(_ draft: ActionEntryDraft<State>) {
        reducers = draft.handlers.map(\.apply)
        creators = draft.commands.map(\.create)
        effects = draft.effects
    }
}
