/// The action that a store reduces on the initial state of a new history, before it publishes that state as version 0.
///
/// A domain handles it where the initial state needs more than default values. No client can dispatch it.
public struct StoreInit: Action {
    /// `storekeeper/init`.
    public static let type = "storekeeper/init"

    init() {}
}

/// The action that a store commits when it starts from a journal, if the action changes the state.
///
/// The effects of the earlier process do not run any more: a domain handles this action to end the phases that wait for
/// an effect. No client can dispatch it.
public struct StoreResume: Action {
    /// `storekeeper/resume`.
    public static let type = "storekeeper/resume"

    /// Makes the action, which has no fields.
    public init() {}
}

enum OwnTypes {
    static let prefix = "storekeeper/"
    static let handled: Set<String> = [StoreInit.type, StoreResume.type]
    /// The types that the store handles for every domain; none of them changes the state.
    static let scheduling: Set<String> = [StoreSchedule.type, StoreUnschedule.type, StoreRefused.type]

    static func isHidden(_ type: String) -> Bool { handled.contains(type) || scheduling.contains(type) }

    static func drafts() -> [String: ActionEntryDraft] {
        var declaration = Declaration<StateBox>()
        On(StoreSchedule.self) { (_: inout StateBox, action, context) throws(Rejection) in
            try action.schedule(in: context)
        }.declare(in: &declaration)
        On(StoreUnschedule.self) { (_: inout StateBox, action, context) throws(Rejection) in
            try action.unschedule(in: context)
        }.declare(in: &declaration)
        On(StoreRefused.self) { (_: inout StateBox, _) in }.declare(in: &declaration)
        return Dictionary(
            uniqueKeysWithValues: declaration.handlers.compactMap { handler in
                handler.actionType.map { ($0.name, ActionEntryDraft(actionType: $0, reducers: [handler])) }
            })
    }
}
