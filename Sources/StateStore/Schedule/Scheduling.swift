internal import StateJSON
internal import Synchronization

/// The requests of a transaction's reducers for later; they become part of the commit, or of nothing.
final class Scheduling: Sendable {
    enum Request: Sendable {
        /// UTF-8 JSON of the action, its time, its name, which is empty for an action without one, and whether the client
        /// itself has asked for it, and not a reducer.
        case put([UInt8], DueTime, ScheduledName, byClient: Bool = false, credential: CredentialKind? = nil)
        case remove(ScheduledName)
        case end(atOrBelow: JSONPointer)
        case endElements(inArray: JSONPointer, from: Int)
        case fault(String)
    }

    private let requests = Mutex<[Request]>([])
    private let isUsed = Atomic(false)
    private let hasPlacesFlag = Atomic(false)

    var isEmpty: Bool { !isUsed.load(ordering: .relaxed) }
    var hasPlaces: Bool { hasPlacesFlag.load(ordering: .relaxed) }
    var count: Int { isEmpty ? 0 : requests.withLock { $0.count } }
    var all: [Request] { isEmpty ? [] : requests.withLock { $0 } }

    func add(_ request: Request) {
        isUsed.store(true, ordering: .relaxed)
        if case .put(_, _, let name, _, _) = request, name.isPlace { hasPlacesFlag.store(true, ordering: .relaxed) }
        requests.withLock { $0.append(request) }
    }

    func add(_ action: any Action, _ due: DueTime, _ name: ScheduledName) {
        do {
            var writer = JSONWriter()
            try action.writeRecord(id: nil, meta: nil, to: &writer)
            add(.put(writer.bytes, due, name))
        } catch {
            add(.fault("\(action.typeName) cannot be encoded as JSON: \(error)"))
        }
    }

    func keep(_ count: Int) {
        requests.withLock { $0.removeSubrange(count...) }
        if count == 0 {
            isUsed.store(false, ordering: .relaxed)
            hasPlacesFlag.store(false, ordering: .relaxed)
        }
    }
}

struct ScheduleStep {
    /// The version of the commit, which in a fork is not that of the cursor.
    let version: Version
    /// Names what has no name of its own.
    let cursor: Cursor
    let time: Timestamp
    let root: String?
    let chain: ScheduledAction.Chain?
    /// The address of the client, where it has no subject.
    var client: String?
    private(set) var schedule: ActionSchedule
    private(set) var changes: [ScheduleChange] = []
    var recorded: ScheduleChanges? { changes.isEmpty ? nil : ScheduleChanges(changes) }
    private(set) var followUps: [Transaction] = []
    private(set) var added: [ScheduledAction] = []
    var placesLeft = placesMax

    /// The most places below arrays that the requests of clients look at together, beyond those of the last request: some
    /// 80 ms of a processor.
    static let placesMax = 200_000

    mutating func remove(_ name: ScheduledName, _ reason: ScheduleChange.Reason) {
        if schedule.remove(name) != nil { changes.append(.removed(name, reason)) }
    }

    mutating func restore(_ past: ActionSchedule) {
        let present = schedule
        present.visit { action in
            if action.isOfState, past[action.name]?.isOfState != true { remove(action.name, .ended) }
        }
        past.visit { action in
            // A client's own action of the same name stays.
            guard action.isOfState, schedule[action.name]?.isOfState != false else { return }
            add(action.again(by: version, index: added.count, at: time))
        }
    }

    private mutating func add(_ action: ScheduledAction) {
        changes.append(.put(action, replacing: schedule.put(action)))
        added.append(action)
    }

    mutating func make(
        _ request: Scheduling.Request, of domain: CompiledDomain
    ) throws(Rejection) {
        switch request {
        case .put(let action, let due, let name, let byClient, let credential):
            try put(action, due, name, byClient, credential, of: domain)
        case .remove(let name): remove(name, .cancelled)
        case .end(let pointer):
            for place in schedule.places(atOrBelow: pointer.description) { remove(place.name, .ended) }
        case .endElements(let array, let first):
            guard placesLeft > 0 else {
                throw Rejection(
                    "bad-schedule", "too many places expire below the arrays that are changed; send it in parts",
                    kind: .invalid)
            }
            let places = schedule.places(atOrBelow: array.description)
            placesLeft -= places.count
            for place in places {
                guard let tokens = JSONPointer(text: place.name.text)?.tokens, tokens.count > array.tokens.count,
                    JSONPointer.index(tokens[array.tokens.count]) ?? 0 >= first
                else { continue }
                remove(place.name, .ended)
            }
        case .fault(let detail): throw Rejection("bad-schedule", detail, kind: .invalid)
        }
    }

    private mutating func put(
        _ action: [UInt8], _ due: DueTime, _ name: ScheduledName, _ byClient: Bool, _ credential: CredentialKind?,
        of domain: CompiledDomain
    ) throws(Rejection) {
        let decoded = try domain.action(in: action, code: "bad-schedule").action
        var time = due.time(of: self.time)
        if case .after(milliseconds: 0) = due, name.text.isEmpty {
            return followUps.append(Transaction([.init(decoded)]))
        }
        if let chain { time = max(time, chain.earliest) }
        guard time <= DueTime.latest else {
            throw Rejection("bad-schedule", "the time is after the year 9999", kind: .invalid)
        }
        var name = name
        if name.text.isEmpty {
            name.text = added.isEmpty ? cursor.description : "\(cursor)/\(added.count)"
        } else if !name.isPlace, name.text.utf8.count > 255 || Cursor(text: name.text) != nil {
            throw Rejection(
                "bad-schedule", "a name has 1 to 255 bytes, and is not spelled like a cursor", kind: .invalid)
        }
        add(
            ScheduledAction(
                name: name, due: time, delay: due.delay, version: version, index: added.count, root: root,
                chain: chain ?? .init(count: 0, since: self.time), action: action, type: decoded.typeName,
                isOfReducer: !byClient && !name.isPlace, client: client, credential: credential))
    }
}
