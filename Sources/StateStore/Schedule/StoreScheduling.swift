package import StateJSON

package enum DueTime: Sendable {
    case after(milliseconds: Int64)
    case at(Timestamp)

    func time(of commit: Timestamp) -> Timestamp {
        switch self {
        case .after(let milliseconds): commit.advanced(byMilliseconds: milliseconds)
        // A time in the past is now.
        case .at(let time): max(time, commit)
        }
    }

    var delay: Int64? { if case .after(let milliseconds) = self { milliseconds } else { nil } }

    /// The latest time, the end of the year 9999.
    package static let latest = Timestamp(milliseconds: 253_402_300_799_999)

    /// So long after the commit; a part of a millisecond counts as a whole one, and no time before it is.
    init(after delay: Duration) {
        let (whole, part) = max(.zero, delay).attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000_000)
        self = .after(milliseconds: Int64(clamping: part > 0 ? whole + 1 : whole))
    }

    /// Reads a number of seconds; nil for one that is negative, or leads beyond the year 9999.
    package init?(seconds: Double) {
        guard seconds >= 0, seconds <= Double(Self.latest.milliseconds) / 1000 else { return nil }
        self = .after(milliseconds: Int64((seconds * 1000).rounded(.up)))
    }

    /// Reads a time with its zone, as RFC 3339 has it; nil for other text, and for a time behind the year 9999.
    package init?(text: String) {
        guard let time = RFC3339.milliseconds(text), time <= Self.latest.milliseconds else { return nil }
        self = .at(Timestamp(milliseconds: time))
    }
}

package struct StoreSchedule: ValidatedAction {
    package static let type = "storekeeper/schedule"

    let action: JSONValue
    let after: Double?
    let at: String?
    let name: String?
    let credential: CredentialKind?
    /// The action as it was decoded, and as it was sent; nil in a replay.
    private var sent: (action: any Action, bytes: [UInt8])?

    package init(
        _ action: any Action, sent bytes: [UInt8], after: Double?, at: String?, name: String?,
        by credential: CredentialKind? = nil
    ) throws(JSONFault) {
        self.credential = credential
        self.action = try JSONValue(parsing: bytes, depthMax: 1000)
        (sent, self.after, self.at, self.name) = ((action, bytes), after, at, name)
    }

    private enum CodingKeys: String, CodingKey { case action, after, at, name, credential }

    package func validate() throws(Rejection) { try (sent?.action as? any ValidatedAction)?.validate() }

    func schedule(in context: ReducerContext) throws(Rejection) {
        guard var due = after.map(DueTime.init(seconds:)) ?? at.map(DueTime.init(text:)) ?? nil else {
            throw Rejection("bad-schedule", "the schedule has no time", kind: .invalid)
        }
        // Of a client, also an action that is due at once is one of the schedule.
        if after == 0 { due = .at(Timestamp(milliseconds: 0)) }
        let name = ScheduledName(name ?? "", by: context.subject)
        context.scheduling?.add(.put(sent?.bytes ?? action.text, due, name, byClient: true, credential: credential))
    }
}

package struct StoreUnschedule: Action {
    package static let type = "storekeeper/unschedule"

    let name: String
    /// The subject that has scheduled it, which is empty for none; nil for the sender.
    let by: String?

    package init(name: String, by: String? = nil) { (self.name, self.by) = (name, by) }

    func unschedule(in context: ReducerContext) throws(Rejection) {
        let name = ScheduledName(name, by: by.map { $0.isEmpty ? nil : $0 } ?? context.subject)
        guard context.scheduling == nil || context.schedule[name] != nil else {
            throw Rejection(
                "not-scheduled",
                "this client has scheduled no action under this name, or it has been dispatched or taken back",
                kind: .missing)
        }
        context.scheduling?.add(.remove(name))
    }
}

/// The action that records why a scheduled action was not committed when it was due.
package struct StoreRefused: Action {
    package static let type = "storekeeper/refused"

    package let action: String
    package let name: String
    package let code: String
    package let detail: String
}

extension StoreRefused {
    package init?(recordedIn commit: Commit) {
        guard commit.types == [Self.type], let document = try? JSONDocument(commit.action, depthMax: 1000),
            let payload = JSONNode(document).members?.first(where: { $0.key == "payload" })?.value,
            let refused: StoreRefused = try? payload.decode()
        else { return nil }
        self = refused
    }
}

extension ReducerContext {
    /// Dispatches an action later, as the subject of this one; the same name again replaces what it has scheduled.
    ///
    /// It belongs to the commit: an action that is refused schedules nothing. In a cascade of scheduled actions, each of which
    /// schedules the next, the store moves an earlier time to one that leaves a second for each of them in the mean. A
    /// time of zero is a follow-up in a later turn, which counts in the budget of its cascade.
    ///
    /// - Parameters:
    ///   - action: an action that the domain declares; the store rejects this action for another one.
    ///   - after: the time from the commit on; the store rejects this action for one that leads beyond the year 9999.
    ///   - name: the name by which ``unschedule(_:)`` finds it, 1 to 255 bytes; nil for none.
    public func schedule(_ action: some Action, after: Duration, as name: String? = nil) {
        scheduling?.add(action, DueTime(after: after), ScheduledName(name ?? "", by: subject))
    }

    /// Dispatches an action at a time, as ``schedule(_:after:as:)`` does; a time in the past is now.
    public func schedule(_ action: some Action, at time: Timestamp, as name: String? = nil) {
        scheduling?.add(action, .at(time), ScheduledName(name ?? "", by: subject))
    }

    /// Takes back what an action of the same subject has scheduled under a name, if it is still to come.
    public func unschedule(_ name: String) { scheduling?.add(.remove(ScheduledName(name, by: subject))) }

    package func schedule(_ action: [UInt8], _ due: DueTime, as name: String?) {
        scheduling?.add(.put(action, due, ScheduledName(name ?? "", by: subject)))
    }

    /// Lets a place of a document expire: after the time, an action removes it.
    package func expire(_ pointer: JSONPointer, after due: DueTime, by action: [UInt8]) {
        scheduling?.add(.put(action, due, ScheduledName(pointer.description, by: subject, isPlace: true)))
    }

    package var mayExpire: Bool { schedule.hasPlaces || scheduling?.hasPlaces ?? false }

    package func endExpiry(atOrBelow pointer: JSONPointer) {
        if mayExpire { scheduling?.add(.end(atOrBelow: pointer)) }
    }

    /// Ends the expiry of the elements of an array from an index on, and of what is below them.
    package func endExpiry(inArray pointer: JSONPointer, from index: Int) {
        if mayExpire { scheduling?.add(.endElements(inArray: pointer, from: index)) }
    }
}
