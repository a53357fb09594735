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
}
