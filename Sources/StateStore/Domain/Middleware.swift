/// A step that every action passes on its way to the reducers, in the order of the store's array.
///
/// A middleware calls `next` with the action to pass it on, with another one to change it, or not at all to swallow it. It
/// throws a ``Rejection`` to refuse the action, and dispatches follow-ups with ``MiddlewareContext/dispatch(_:)``. After
/// `next` the context has the state that the action made. A middleware runs inside the turn, on a copy of the state, also
/// in a dry run, and more than once where another writer appends first: it must be quick, and do no I/O but logging. A
/// dry run over HTTP is no part of a turn, and may run at the same time as one.
public struct Middleware<State: StateType>: Sendable {
    /// Passes an action to the next middleware, or from the last one to the reducers.
    public typealias Next = (any Action) throws(Rejection) -> Void

    package let step: MiddlewareStep

    /// Makes a middleware of a function.
    public init(
        _ process:
            @escaping @Sendable (_ action: any Action, _ context: MiddlewareContext<State>, _ next: Next)
            throws(Rejection) ->
            Void
    ) {
        step = MiddlewareStep { action, context, next throws(Rejection) in
            try process(action, MiddlewareContext(transaction: context), next)
        }
    }

    init(_ step: MiddlewareStep) { self.step = step }

    /// Calls ``ValidatedAction/validate()`` of every action that has it.
    public static var validation: Middleware { Middleware(.validation) }
}

package struct MiddlewareStep: Sendable {
    typealias Process =
        @Sendable (any Action, TransactionContext, (any Action) throws(Rejection) -> Void) throws(Rejection) -> Void

    /// Whether it calls `next` with the action that it gets, or not at all.
    var passesActionsOn = false
    var onlyValidates = false
    let process: Process

    package static let validation = MiddlewareStep(passesActionsOn: true, onlyValidates: true) {
        action, _, next throws(Rejection) in
        if let action = action as? any ValidatedAction { try action.validate() }
        try next(action)
    }

    package static func logging(_ log: @escaping @Sendable (LogRecord) -> Void) -> MiddlewareStep {
        MiddlewareStep(passesActionsOn: true) { action, context, next throws(Rejection) in
            var record = LogRecord(
                actionType: action.typeName, version: context.version, isDryRun: context.isDryRun)
            defer { log(record) }
            do throws(Rejection) {
                try next(action)
            } catch {
                record.rejection = error
                throw error
            }
        }
    }
}

/// An action on its way to the reducers, as middleware sees it.
public struct MiddlewareContext<State: StateType> {
    let transaction: TransactionContext

    /// The state: before `next`, the one that the action finds; after it, the one that the action has made.
    public var state: State { transaction.state.state() }

    /// Whether this is a dry run, of which the store keeps nothing.
    public var isDryRun: Bool { transaction.isDryRun }

    /// The subject that dispatches the action, or nil if the server knows no subjects, and for an action of the
    /// process.
    ///
    /// A follow-up has the subject of the commit that caused it.
    public var subject: String? { transaction.subject }

    /// Dispatches another action after this one, in a later turn.
    ///
    /// The store drops the follow-up in a dry run, and when it refuses this action or its batch.
    public func dispatch(_ action: any Action) { transaction.collect(Transaction([.init(action)])) }
}

final class TransactionContext {
    // exclusivity unchecked: one turn uses the variables, and a check takes as long as ten accesses.

    var state: StateBox { (made ?? before).state }
    var version: Version { before.version + 1 }
    @exclusivity(unchecked) private(set) var isDryRun = false
    @exclusivity(unchecked) private(set) var subject: String?
    @exclusivity(unchecked) private var before: Snapshot
    /// The time of the commit, the ID that the client gave to the action that is on its way, and its position.
    @exclusivity(unchecked) var item: (time: Timestamp, id: String?, index: Int) = (Timestamp(milliseconds: 0), nil, 0)
    /// Nil before an action reaches the reducers.
    @exclusivity(unchecked) private(set) var made: Snapshot?
    @exclusivity(unchecked) private(set) var applied: [any Action] = []
    @exclusivity(unchecked) private(set) var entries: [ActionEntry] = []
    @exclusivity(unchecked) private(set) var followUps: [Transaction] = []
    /// How many commands, one from the other, have made the current action, and whether one made any action so far.
    @exclusivity(unchecked) var commands = (depth: 0, haveMade: false)
    private let work = WorkMeter()
    /// Nil outside a turn.
    @exclusivity(unchecked) private var mark: TurnMark?
    @exclusivity(unchecked) private(set) var restored: Snapshot?
    var isRestored: Bool { restored != nil }
    var mayChangeSchedule: Bool { isRestored || !scheduling.isEmpty }
    let scheduling = Scheduling()

    init(_ before: Snapshot) { self.before = before }

    func begin(_ before: Snapshot, _ transaction: Transaction, at time: Timestamp, mark: TurnMark?) {
        (self.before, self.mark) = (before, mark)
        item = (time, nil, 0)
        subject = transaction.subject
        isDryRun = transaction.purpose == .dryRun
        // A reducer may have kept its context, which is that of another action now.
        if !scheduling.isEmpty { scheduling.keep(0) }
        if work.isUsed { work.reset() }
    }

    func end(at snapshot: Snapshot) {
        (before, made) = (snapshot, nil)
        // Nearly every transaction has one action, and to remove the last element is the fastest way to none.
        if applied.count == 1 { applied.removeLast() } else { applied.removeAll(keepingCapacity: true) }
        if entries.count == 1 { entries.removeLast() } else { entries.removeAll(keepingCapacity: true) }
        if !followUps.isEmpty { followUps = [] }
        commands = (0, false)
        restored = nil
        if !scheduling.isEmpty { scheduling.keep(0) }
    }

    /// The reducers change a copy: a middleware may catch their rejection, and then the state must be as before.
    func reduce(_ action: any Action, _ entry: ActionEntry) throws(Rejection) {
        var state = state
        let requestsCount = scheduling.count
        let name = ActionName(
            Cursor(before.cursor.epoch, version), at: item.time, own: item.id, index: item.index)
        let context = ReducerContext(
            subject: subject, name: name, work: work, schedule: before.schedule, scheduling: scheduling)
        do throws(Rejection) {
            mark?.isReducing = true
            defer { mark?.isReducing = false }
            try entry.reduce(&state, action, context)
        } catch {
            if !scheduling.isEmpty { scheduling.keep(requestsCount) }
            throw error
        }
        made = Snapshot(state, after: before)
        applied.append(action)
        entries.append(entry)
    }

    func restore(_ snapshot: Snapshot) {
        let next = Snapshot(snapshot.state, after: before)
        next.tree = snapshot.tree
        (made, restored) = (next, snapshot)
    }

    func collect(_ followUp: Transaction) { followUps.append(followUp) }
}

/// The record that the logging middleware makes of an action; it never has the payload.
package struct LogRecord: Sendable {
    package var actionType: String
    package var version: Version
    package var isDryRun: Bool
    package var rejection: Rejection?
}
