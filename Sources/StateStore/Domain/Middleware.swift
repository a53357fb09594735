/// A step that every action passes on its way to the reducers, in the order of the store's array.
///
/// A middleware calls `next` with the action to pass it on, with another to change it, or not at all to swallow it; it
/// throws a ``Rejection`` to refuse it, and dispatches others with ``MiddlewareContext/dispatch(_:)``. After `next` it sees the
/// state that the action made. It runs inside the turn, on a copy of the state, also in a dry run: it must be quick and do
/// nothing outside but log.
public struct Middleware<State: Sendable>: Sendable {
    /// Passes an action to the next middleware, at the end to the reducers.
    public typealias Next = (any Action) throws(Rejection) -> Void

    let process: @Sendable (any Action, MiddlewareContext<State>, Next) throws(Rejection) -> Void

    /// Makes a middleware.
    public init(
        _ process:
            @escaping @Sendable (_ action: any Action, _ context: MiddlewareContext<State>, _ next: Next)
            throws(Rejection) ->
            Void
    ) {
        self.process = process
    }
}

/// What a middleware can see of an action's way through the store.
public final class MiddlewareContext<State: Sendable> {
    /// The state as it is at this point: before `next`, as the action finds it; after, as the action leaves it.
    public internal(set) var state: State
    /// The version that the action makes if all goes well.
    public let version: Version
    /// Whether nothing of this will be kept.
    public let isDryRun: Bool
    /// The actions that have reached the reducers, and what is done with each.
    var applied: [any Action] = []
    var entries: [ActionEntry] = []
    /// What is dispatched once this is committed.
    private(set) var followUps: [any Action] = []
    /// How many creators have made the action that is on its way now.
    var creationDepth = 0

    init(state: State, version: Version, isDryRun: Bool) {
        self.state = state
        self.version = version
        self.isDryRun = isDryRun
    }

    /// Dispatches another action after this one, in a later turn.
    ///
    /// It is dropped when this action, or the batch that it belongs to, is refused, and in a dry run.
    public func dispatch(_ action: any Action) { followUps.append(action) }
}

extension Middleware {
    /// Asks every ``ValidatedAction`` whether it is valid.
    public static var validation: Middleware {
        Middleware { action, _, next throws(Rejection) in
            if let action = action as? any ValidatedAction { try action.validate() }
            try next(action)
        }
    }

    /// Tells what became of each action.
    public static func logging(_ log: @escaping @Sendable (LogRecord) -> Void) -> Middleware {
        Middleware { action, context, next throws(Rejection) in
            let type = Swift.type(of: action).type
            do throws(Rejection) {
                try next(action)
            } catch {
                log(LogRecord(actionType: type, version: context.version, isDryRun: context.isDryRun, rejection: error))
                throw error
            }
            log(LogRecord(actionType: type, version: context.version, isDryRun: context.isDryRun, rejection: nil))
        }
    }
}

/// What the logging middleware tells about an action.
///
/// It never holds the payload.
public struct LogRecord: Sendable {
    /// The action's type.
    public var actionType: String
    /// The version that it makes, or would have made.
    public var version: Version
    /// Whether nothing of it is kept.
    public var isDryRun: Bool
    /// Why it was refused, or nil when it passed.
    public var rejection: Rejection?
}
