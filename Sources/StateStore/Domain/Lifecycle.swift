/// Reduced once on the state that a new history begins with, before anything is published: its version stays 0.
///
/// A domain handles it where the initial state takes more than default values. No client can dispatch it.
public struct StoreInit: Action {
    /// `storekeeper/init`.
    public static let type = "storekeeper/init"

    /// Makes the action.
    public init() {}
}

/// Committed when a store goes on from a journal, if that changes anything: the effects of the process before are gone.
///
/// The place to say that what was being loaded is not being loaded any more. No client can dispatch it.
public struct StoreResume: Action {
    /// `storekeeper/resume`.
    public static let type = "storekeeper/resume"

    /// Makes the action.
    public init() {}
}

/// The action types that are the store's own.
enum OwnTypes {
    static let prefix = "storekeeper/"
    static let handled: Set<String> = [StoreInit.type, StoreResume.type]
}
