import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

/// A domain whose reducers schedule.
private struct Ticker: Domain {
    struct State: StateType, Codable {
        var ticks: [Int64] = []
        var notes: [String] = []
    }
    struct Tick: Action { static let type = "tick"; var milliseconds: Int64; var name: String? }
    struct Note: Action {
        static let type = "note"
        var text: String
    }
    struct Later: Action {
        static let type = "later"
        var text: String
        var milliseconds: Int64
        var name: String?
        var isRefused = false
    }
    struct Forget: Action { static let type = "forget"; var name: String }
    struct After: Action { static let type = "after"; var delay: Duration }
    struct At: Action { static let type = "at"; var milliseconds: Int64; var name: String? }

    var reducer: some Reducer<State> {
        On(Tick.self) { state, action, context in
            state.ticks.append(context.name?.time.milliseconds ?? -1)
            context.schedule(action, after: .milliseconds(action.milliseconds), as: action.name)
        }
        On(Note.self) { state, action throws(Rejection) in
            guard action.text != "bad" else { throw Rejection("bad", "a bad note") }
            state.notes.append(action.text)
        }
        On(Later.self) { _, action, context throws(Rejection) in
            context.schedule(
                Note(text: action.text), after: .milliseconds(action.milliseconds), as: action.name)
            if action.isRefused { throw Rejection("refused", "after it has scheduled") }
        }
        On(Forget.self) { _, action, context in context.unschedule(action.name) }
        On(After.self) { _, action, context in context.schedule(Note(text: "a"), after: action.delay) }
        On(At.self) { _, action, context in
            context.schedule(
                Note(text: "at"), at: Timestamp(milliseconds: action.milliseconds), as: action.name)
        }
    }
}

/// A wall clock that a test turns.
private final class Wall: Sendable {
    private let milliseconds = Atomic<Int64>(0)
    var now: Timestamp {
        get { Timestamp(milliseconds: milliseconds.load(ordering: .relaxed)) }
        set { milliseconds.store(newValue.milliseconds, ordering: .relaxed) }
    }
}

extension Store where State == Ticker.State {
    fileprivate static func ticker(
        _ wall: Wall, limits: StoreLimits = StoreLimits(), journal: (any Journal)? = nil,
        middleware: [Middleware<State>] = [], schedule: ActionSchedule = ActionSchedule(),
        report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) throws -> Store {
        UntypedStore(
            domain: try CompiledDomain(Ticker()), middleware: middleware.map(\.step), limits: limits,
            origin: .init(
                state: .of(State()), cursor: Cursor(Core.sampleEpoch, schedule.isEmpty ? 0 : 100),
                schedule: schedule),
            now: { wall.now }, journal: journal, report: report
        ).typed(Ticker.State.self)
    }

    /// Dispatches what is due at a time, and returns when all of it has landed.
    fileprivate func turn(_ wall: Wall, to milliseconds: Int64) {
        wall.now = Timestamp(milliseconds: milliseconds)
        repeat {
            queue.sync { TurnMark(of: queue).with { dispatchDue() } }
            while untyped.firing.withLock({ $0?.pendingCount ?? 0 }) > 0 { queue.sync {} }
        } while latest.schedule.first.map { $0.due <= wall.now } ?? false
    }
}

extension Store {
    fileprivate func submitNow(_ transaction: Transaction, client: String?) -> Outcome {
        let outcome = Mutex(Outcome.draining)
        enqueue(PendingTransaction(transaction, client: client) { taken in outcome.withLock { $0 = taken } })
        flushNow()
        queue.sync {}
        return outcome.withLock { $0 }
    }
}

private func scheduled(
    _ action: some Action, after seconds: Double? = nil, at: String? = nil, name: String? = nil, by: String? = nil,
    id: String? = nil, with credential: CredentialKind? = nil
) throws -> Transaction {
    var writer = JSONWriter()
    try action.writeRecord(id: id, meta: nil, to: &writer)
    let schedule = try StoreSchedule(action, sent: writer.bytes, after: seconds, at: at, name: name, by: credential)
    return Transaction([.init(schedule, id: id)], subject: by)
}

private func unscheduled(_ name: String, by: String? = nil) -> Transaction {
    Transaction([.init(StoreUnschedule(name: name))], subject: by)
}

@Suite("Scheduled actions", .timeLimit(.minutes(5)))
struct ScheduleTests {
    private let wall = Wall()

    @Test("an action is committed once, when it is due and not before, with its sender and its cause")
    func once() throws {
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        let outcome = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 2, name: "n", by: "ada", id: "mine"))
        #expect(outcome.receipt?.scheduled.first?.due == Timestamp(milliseconds: 2000))
        #expect(outcome.receipt?.isChange == false)

        store.turn(wall, to: 1999)
        #expect(store.state.notes == [])
        store.turn(wall, to: 2000)
        store.turn(wall, to: 5000)

        #expect(store.state.notes == ["a"])
        #expect(store.latest.schedule.isEmpty)
        let commit = try #require(store.hub.commit(version: 2))
        #expect(commit.by == "ada")
        #expect(commit.cause == "aaaaaaaaaaaaaaaa.1")
        #expect(commit.id == "mine")
        #expect(text(commit.action) == #"{"id":"mine","type":"note","payload":{"text":"a"}}"#)
        #expect(text(commit.schedule?.json) == #"[{"op":"fire","name":"n","by":"ada"}]"#)
        #expect(store.version == 2)
    }

    @Test("actions are committed in the order of their times, and of one time in that of their commits")
    func order() throws {
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        for (note, seconds) in [("c", 3.0), ("a", 1), ("b1", 2), ("b2", 2)] {
            _ = store.submitNow(try scheduled(Ticker.Note(text: note), after: seconds))
        }

        store.turn(wall, to: 9000)

        #expect(store.state.notes == ["a", "b1", "b2", "c"])
    }

    @Test("a name replaces and takes back what its subject has scheduled, and nothing of another subject")
    func names() throws {
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        _ = store.submitNow(try scheduled(Ticker.Note(text: "old"), after: 1, name: "n", by: "ada"))
        _ = store.submitNow(try scheduled(Ticker.Note(text: "new"), after: 2, name: "n", by: "ada"))
        _ = store.submitNow(try scheduled(Ticker.Note(text: "bob"), after: 2, name: "n", by: "bob"))
        #expect(store.latest.schedule.count == 2)
        #expect(text(store.hub.commit(version: 2)?.schedule?.json)?.contains(#""op":"replace""#) == true)

        #expect(store.submitNow(unscheduled("n", by: "eve")).rejection?.kind == .missing)
        #expect(store.submitNow(unscheduled("n", by: "bob")).receipt?.version == 4)
        #expect(store.submitNow(unscheduled("n", by: "bob")).rejection?.code == "not-scheduled")
        store.turn(wall, to: 9000)

        #expect(store.state.notes == ["new"])
    }

    @Test("a refusal when it is due is recorded with its code, under the action's ID, and is not tried again")
    func refusals() throws {
        let store = try Store.ticker(wall)
        store.untyped.beginFiring(judge: { action, _ in action.id == "b" ? Rejection("token-revoked", "no token") : nil
        })
        _ = store.submitNow(try scheduled(Ticker.Note(text: "bad"), after: 1, id: "a"))
        _ = store.submitNow(try scheduled(Ticker.Note(text: "b"), after: 2, id: "b"))
        _ = store.submitNow(try scheduled(Ticker.Note(text: "c"), after: 3))

        store.turn(wall, to: 9000)

        #expect(store.state.notes == ["c"])
        let refused = ["a", "b"].map { store.hub.commit(id: $0, by: nil).flatMap(StoreRefused.init(recordedIn:)) }
        #expect(refused.map(\.?.code) == ["bad", "token-revoked"])
        #expect(store.latest.schedule.isEmpty)
        #expect(store.version == 6)
    }

    @Test("a middleware that refuses everything does not keep a refusal from being recorded")
    func hostileMiddleware() throws {
        let isOpen = Atomic(true)
        let middleware = Middleware<Ticker.State> { action, _, next throws(Rejection) in
            guard isOpen.load(ordering: .relaxed) else { throw Rejection("closed", "closed") }
            try next(action)
        }
        let store = try Store.ticker(wall, middleware: [middleware])
        store.untyped.beginFiring()
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1, id: "a"))
        isOpen.store(false, ordering: .relaxed)

        store.turn(wall, to: 1000)

        #expect(store.hub.commit(id: "a", by: nil).flatMap(StoreRefused.init(recordedIn:))?.code == "closed")
        #expect(store.latest.schedule.isEmpty)
    }

    @Test("a commit that the journal does not take leaves its action scheduled, and it is committed later")
    func failedAppend() throws {
        let isBroken = Atomic(false)
        let journal = HookedJournal { _ in if isBroken.load(ordering: .relaxed) { throw CancellationError() } }
        let store = try Store.ticker(wall, journal: journal)
        store.untyped.beginFiring()
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1))
        isBroken.store(true, ordering: .relaxed)
        wall.now = Timestamp(milliseconds: 1000)
        store.queue.sync { TurnMark(of: store.queue).with { store.dispatchDue() } }
        while store.untyped.firing.withLock({ $0?.pendingCount ?? 0 }) > 0 { store.queue.sync {} }
        #expect(store.latest.schedule.count == 1)
        #expect(store.version == 1)

        isBroken.store(false, ordering: .relaxed)
        store.turn(wall, to: 1000)

        #expect(store.state.notes == ["a"])
        #expect(store.version == 2)
    }

    @Test("an action whose turn has a clock that has gone back waits, also where it is due again when the turn lands")
    func clockGoesBack() throws {
        let isBack = Atomic(false)
        let journal = HookedJournal { [wall] _ in
            if isBack.load(ordering: .relaxed) { wall.now = Timestamp(milliseconds: 1000) }
        }
        let store = try Store.ticker(wall, journal: journal)
        store.untyped.beginFiring()
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1))

        store.onQueue {
            wall.now = Timestamp(milliseconds: 1000)
            store.dispatchDue()
            wall.now = Timestamp(milliseconds: 999)
            isBack.store(true, ordering: .relaxed)
            // Its commit makes the turn wait for the journal.
            store.submit(PendingTransaction(.of(Ticker.Note(text: "b"))) { _ in })
        }
        while store.untyped.firing.withLock({ $0?.pendingCount ?? 0 }) > 0 { store.queue.sync {} }
        store.turn(wall, to: 1000)

        #expect(store.state.notes == ["b", "a"])
        #expect(store.version == 3)
    }

    @Test("two stores on one journal commit each action once, whichever dispatches it")
    func twoWriters() throws {
        let journal = MemoryJournal(try CompiledDomain(Ticker()).bytes(of: .of(Ticker.State())))
        let stores = [try Store.ticker(wall, journal: journal), try Store.ticker(wall, journal: journal)]
        for store in stores { store.untyped.beginFiring() }
        for number in 0..<50 {
            _ = stores[number % 2].submitNow(
                try scheduled(Ticker.Note(text: "\(number)"), after: Double(number % 7) + 1))
            for store in stores { store.queue.sync {} }
        }

        wall.now = Timestamp(milliseconds: 8000)
        DispatchQueue.concurrentPerform(iterations: 2) { stores[$0].turn(wall, to: 8000) }
        for store in stores { store.queue.sync {} }

        for store in stores {
            #expect(Set(store.state.notes).count == 50)
            #expect(store.state.notes.count == 50)
            #expect(store.latest.schedule.isEmpty)
        }
        #expect(journal.latestVersion == 100)
    }

    @Test("a store that starts with overdue actions reports how late they are, and commits them in order")
    func overdue() throws {
        let first = try Store.ticker(wall)
        for seconds in [3.0, 1, 2] {
            _ = first.submitNow(try scheduled(Ticker.Note(text: "\(seconds)"), after: seconds))
        }
        let saved = try SavedState(saved: first.latest.saved())
        let reported = Collection<String>()
        wall.now = Timestamp(milliseconds: 61_000)

        let store = try Store.ticker(wall, schedule: saved.schedule) {
            if case .scheduledLate(let count, let late) = $0 { reported.add("\(count) by \(late)") }
        }
        store.untyped.beginFiring()
        store.turn(wall, to: 61_000)

        #expect(reported.values == ["3 by 60.0 seconds"])
        #expect(store.state.notes == ["1.0", "2.0", "3.0"])
    }

    @Test("a store that has not begun dispatches nothing, and neither does a fork, which has a schedule of its own")
    func forks() throws {
        let journal = MemoryJournal(try CompiledDomain(Ticker()).bytes(of: .of(Ticker.State())))
        let store = try Store.ticker(wall, journal: journal)
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1, name: "n"))
        let state = try journal.state(at: 0)?.bytes ?? []
        let advance = try store.untyped.fork(
            state, at: Cursor(Core.sampleEpoch, 0), through: 1, time: wall.now, hasRoom: { _ in true }
        ) {
            journal.commits(after: $0, through: .max, limit: 100)
        }
        let fork = try #require(try advance { true })
        let forked = try #require(Store<Ticker.State>(fork.store))
        #expect(fork.appliedCount == 1)
        #expect(forked.latest.schedule.count == 1)

        #expect(forked.submitNow(try scheduled(Ticker.Note(text: "b"), after: 1, name: "m")).receipt != nil)
        #expect(forked.latest.schedule.count == 2)
        for store in [store, forked] { store.turnWithoutWaiting(wall, to: 5000) }

        #expect(store.state.notes == [] && forked.state.notes == [])
    }

    @Test("above the most scheduled actions a further one is refused, and a replacement is not")
    func limit() throws {
        var limits = StoreLimits()
        limits.scheduleMax = 2
        let store = try Store.ticker(wall, limits: limits)
        #expect(store.submitNow(try scheduled(Ticker.Note(text: "z"), after: 1, name: "z")).receipt != nil)
        #expect(store.submitNow(unscheduled("z")).receipt != nil)
        for name in ["a", "b"] { _ = store.submitNow(try scheduled(Ticker.Note(text: name), after: 1, name: name)) }

        #expect(
            store.submitNow(try scheduled(Ticker.Note(text: "c"), after: 1, name: "c")).rejection?.code
                == "schedule-full")
        #expect(store.submitNow(.of(Ticker.Later(text: "d", milliseconds: 5))).rejection?.code == "schedule-full")
        #expect(store.submitNow(try scheduled(Ticker.Note(text: "B"), after: 2, name: "b")).receipt != nil)
        #expect(store.latest.schedule.count == 2)
        // More actions are too many, also where they have fewer bytes.
        let long = String(repeating: "x", count: 5000)
        #expect(store.submitNow(try scheduled(Ticker.Note(text: long), after: 2, name: "b")).receipt != nil)
        let more = try ["x", "y"].flatMap { try scheduled(Ticker.Note(text: $0), after: 1, name: $0).items }
        let swap = Transaction([Transaction.Item(StoreUnschedule(name: "b"))] + more, form: .batch)
        #expect(store.submitNow(swap).rejection?.code == "schedule-full")
        #expect(store.latest.schedule.count == 2)
    }
}

extension Store where State == Ticker.State {
    fileprivate func turnWithoutWaiting(_ wall: Wall, to milliseconds: Int64) {
        wall.now = Timestamp(milliseconds: milliseconds)
        queue.sync { TurnMark(of: queue).with { dispatchDue() } }
        queue.sync {}
    }
}

@Suite("A client's share of the schedule")
struct ScheduleShareTests {
    private let wall = Wall()

    private func outcome(
        _ store: Store<Ticker.State>, _ name: String, text: String = "", after: Double = 9, by subject: String? = nil,
        from client: String? = nil
    ) throws -> Outcome {
        let transaction = try scheduled(Ticker.Note(text: text), after: after, name: name, by: subject)
        return store.submitNow(transaction, client: client)
    }

    @Test(
        "a client has a quarter of the actions, and leaves the rest to others",
        arguments: [("ada", nil, "bob", nil), (nil, "10.0.0.1", nil, "10.0.0.2"), (nil, "10.0.0.1", nil, nil)]
            as [(String?, String?, String?, String?)])
    func count(subject: String?, client: String?, other: String?, otherClient: String?) throws {
        var limits = StoreLimits()
        limits.scheduleMax = 12
        let store = try Store.ticker(wall, limits: limits)
        for name in ["a", "b", "c"] { #expect(try outcome(store, name, by: subject, from: client).receipt != nil) }

        let refused = try outcome(store, "d", by: subject, from: client).rejection
        #expect(refused?.code == "schedule-full")
        #expect(refused?.kind == .tooMany)
        // What replaces, takes back or does something else is taken.
        #expect(try outcome(store, "c", after: 5, by: subject, from: client).receipt != nil)
        for name in ["x", "y", "z"] {
            #expect(try outcome(store, name, by: other, from: otherClient).receipt != nil, "\(name)")
        }
        #expect(store.submitNow(unscheduled("a", by: subject), client: client).receipt != nil)
        #expect(try outcome(store, "e", by: subject, from: client).receipt != nil)
        #expect(try outcome(store, "f", by: subject, from: client).rejection?.kind == .tooMany)
    }

    @Test(
        "what reducers schedule for a client counts, also the action that schedules itself again, and it survives a start"
    )
    func reducers() throws {
        var limits = StoreLimits()
        limits.scheduleMax = 8
        let store = try Store.ticker(wall, limits: limits)
        store.untyped.beginFiring()
        let later = { Transaction([.init(Ticker.Later(text: $0, milliseconds: 90_000, name: $0))]) }
        let tick = Transaction([.init(Ticker.Tick(milliseconds: 2000, name: "t"))])
        #expect(store.submitNow(tick, client: "10.0.0.1").receipt != nil)
        #expect(store.submitNow(later("a"), client: "10.0.0.1").receipt != nil)
        #expect(store.submitNow(later("b"), client: "10.0.0.1").rejection?.kind == .tooMany)
        for time in stride(from: Int64(1000), through: 7000, by: 1000) { store.turn(wall, to: time) }
        #expect(store.state.ticks.count == 4)
        #expect(store.submitNow(later("b"), client: "10.0.0.1").rejection?.kind == .tooMany)

        let saved = try SavedState(saved: store.latest.saved())
        let next = try Store.ticker(wall, limits: limits, schedule: saved.schedule)

        #expect(next.submitNow(later("b"), client: "10.0.0.1").rejection?.kind == .tooMany)
        #expect(next.submitNow(later("b"), client: "10.0.0.2").receipt != nil)
    }

    @Test("the bytes have a share, too, and a single action is taken however low the limits are")
    func bytes() throws {
        var limits = StoreLimits()
        limits.scheduleBytesMax = 8000
        let store = try Store.ticker(wall, limits: limits)
        let long = String(repeating: "x", count: 1000)
        #expect(try outcome(store, "a", text: long, by: "ada").receipt != nil)
        #expect(try outcome(store, "b", text: long, by: "ada").rejection?.kind == .tooMany)
        #expect(try outcome(store, "b", text: long, by: "bob").receipt != nil)
        limits.scheduleBytesMax = 600
        let small = try Store.ticker(wall, limits: limits)
        #expect(try outcome(small, "a", by: "ada").receipt != nil)
        #expect(try outcome(small, "b", by: "bob").rejection?.kind == .conflict)
    }

    @Test("a subject, or the empty name for none, says whose action is taken back")
    func by() throws {
        let store = try Store.ticker(wall)
        for subject in ["ada", nil] { _ = try outcome(store, "n", by: subject) }

        let unschedule = { Transaction([.init(StoreUnschedule(name: "n", by: $0))], subject: "root") }
        #expect(store.submitNow(unschedule(nil)).rejection?.code == "not-scheduled")
        #expect(store.submitNow(unschedule("bob")).rejection?.code == "not-scheduled")
        #expect(store.submitNow(unschedule("ada")).receipt != nil)
        #expect(store.latest.schedule[ScheduledName("n", by: nil)] != nil)
        #expect(store.submitNow(unschedule("")).receipt != nil)
        #expect(store.latest.schedule.isEmpty)
    }
}

@Suite("The schedule of a state that comes back")
struct RestoredScheduleTests {
    private let wall = Wall()

    private func restore(_ past: Snapshot, in store: Store<Ticker.State>) throws -> Outcome {
        let item = Transaction.Item(
            content: .restore(Restoration(.version(past.cursor.version))),
            sent: Array(#"{"type":"storekeeper/restore"}"#.utf8))
        return store.submitNow(Transaction([item]).restoring(try store.untyped.stateToRestore(like: past), ifAt: nil))
    }

    private func entries(_ store: Store<Ticker.State>) -> [String] {
        var found: [String] = []
        store.latest.schedule.visit { found.append("\($0.name.text) \($0.due.milliseconds) \($0.name.by ?? "-")") }
        return found
    }

    private func later(_ name: String, _ milliseconds: Int64, by subject: String? = "ada") -> Transaction {
        Transaction(
            [.init(Ticker.Later(text: name, milliseconds: milliseconds, name: name))], subject: subject)
    }

    @Test("a delay in a chain begins anew as it was wanted, and a time that was named stays; both survive a start")
    func chains() throws {
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        _ = store.submitNow(.of(Ticker.Tick(milliseconds: 7000, name: "t")))
        for time in stride(from: Int64(1000), through: 20_000, by: 1000) { store.turn(wall, to: time) }
        #expect(store.latest.schedule.first?.chain.count == 2)
        _ = store.submitNow(.of(Ticker.At(milliseconds: 30_000, name: "at")))
        _ = store.submitNow(.of(Ticker.At(milliseconds: 300_000, name: "later")))
        let saved = try SavedState(saved: store.latest.saved())
        let past = try store.untyped.snapshot(restoring: saved, at: store.latest.cursor)
        store.turn(wall, to: 100_500)

        _ = try restore(past, in: store)

        // The time that was named has passed, and is now.
        store.turn(wall, to: 100_500)
        #expect(store.state.notes == ["at"])
        #expect(entries(store) == ["t 107500 -", "later 300000 -"])
    }

    @Test("a record of a version before 0.3.0 has the delay of its times, and in a chain the mean")
    func olderRecords() throws {
        let entry = #""version":3,"reducer":true,"since":1000,"action":{"type":"note","payload":{"text":"a"}}"#
        let json = #"[{"name":"a","due":9000,\#(entry)},{"name":"b","due":9001,"index":1,"chain":3,\#(entry)}]"#

        let schedule = try ActionSchedule(Array(json.utf8))

        #expect(["a", "b"].map { schedule[ScheduledName($0, by: nil)]?.delay } == [8000, 2000])
    }

    @Test("a restore that has no room for what comes back is refused, and changes nothing")
    func noRoom() throws {
        var limits = StoreLimits()
        limits.scheduleMax = 4
        let store = try Store.ticker(wall, limits: limits)
        for name in ["a", "b", "c"] { _ = store.submitNow(later(name, 9000, by: name)) }
        let past = store.latest
        for name in ["a", "b", "c"] {
            _ = store.submitNow(Transaction([.init(Ticker.Forget(name: name))], subject: name))
            _ = store.submitNow(try scheduled(Ticker.Note(text: name), after: 5, name: "own", by: name))
        }
        let version = store.version

        #expect(try restore(past, in: store).rejection?.code == "schedule-full")
        #expect(store.version == version)
    }

    @Test("a restore brings back what belongs to the state whoever's share it is, and its owner then adds nothing")
    func beyondShare() throws {
        var limits = StoreLimits()
        limits.scheduleMax = 8
        let store = try Store.ticker(wall, limits: limits)
        for name in ["a", "b"] { _ = store.submitNow(later(name, 9000)) }
        let past = store.latest
        for name in ["a", "b"] {
            _ = store.submitNow(Transaction([.init(Ticker.Forget(name: name))], subject: "ada"))
            let own = try scheduled(Ticker.Note(text: name), after: 5, name: "own \(name)", by: "ada")
            #expect(store.submitNow(own).receipt != nil)
        }

        #expect(try restore(past, in: store).receipt != nil)

        #expect(store.latest.schedule.count == 4)
        #expect(store.submitNow(later("c", 9000)).rejection?.kind == .tooMany)
        #expect(store.submitNow(later("c", 9000, by: "bob")).receipt != nil)
    }

    @Test("a fork has what its commits schedule, without those that it leaves out, and what it has comes back with it")
    func forks() throws {
        let journal = MemoryJournal(try CompiledDomain(Ticker()).bytes(of: .of(Ticker.State())))
        let store = try Store.ticker(wall, journal: journal)
        store.untyped.beginFiring()
        _ = store.submitNow(later("early", 50_000))
        let begun = store.latest
        for (id, name, milliseconds) in [("1", "fired", 1000), ("2", "kept", 90_000), ("3", "gone", 90_000)]
            as [(String, String, Int64)]
        {
            let action = Ticker.Later(text: name, milliseconds: milliseconds, name: name)
            _ = store.submitNow(Transaction([.init(action, id: id)], subject: "ada"))
        }
        // Without a name of its own: later commits name it by its cursor.
        let unnamed = store.submitNow(try scheduled(Ticker.Note(text: "unnamed"), after: 3)).receipt
        store.turn(wall, to: 4000)
        #expect(store.state.notes == ["fired", "unnamed"])
        #expect(unnamed != nil)
        let advance = try store.untyped.fork(
            begun.saved(), at: begun.cursor, through: store.version, skipping: ["3"], time: wall.now,
            hasRoom: { _ in true }
        ) {
            journal.commits(after: $0, through: .max, limit: 100)
        }
        let fork = try #require(try advance { true })
        let forked = try #require(Store<Ticker.State>(fork.store))

        #expect(fork.refusals.isEmpty)
        #expect(forked.state.notes == ["fired", "unnamed"])
        #expect(entries(forked) == ["early 50000 ada", "kept 90000 ada"])
        let replayed = try #require(try forked.untyped.journal?.state(at: forked.version))
        #expect(replayed.schedule == forked.latest.schedule)
        wall.now = Timestamp(milliseconds: 10_000)
        _ = try restore(forked.latest, in: store)
        #expect(entries(store) == ["early 60000 ada", "kept 100000 ada"])
    }

    @Test("a commit behind one that a fork refuses for what it schedules has a patch of its own changes only")
    func patchBehindRefusal() throws {
        let domain = try CompiledDomain(Ticker())
        let saved = SavedState(try domain.bytes(of: .of(Ticker.State())), ActionSchedule()).bytes
        var replay = try Replay(domain, from: saved, version: 0)
        let commit = { (type: String, payload: String) in
            Commit(
                version: 1, time: Timestamp(milliseconds: 5), id: "a", types: [type],
                action: Array(#"{"type":"\#(type)","payload":\#(payload)}"#.utf8), patch: Array("[]".utf8))
        }
        let step = { (schedule: ActionSchedule) in
            ScheduleStep(
                version: 1, cursor: Cursor(Core.sampleEpoch, 1), time: Timestamp(milliseconds: 5), root: nil,
                chain: nil,
                schedule: schedule)
        }
        let name = String(repeating: "n", count: 300)

        let fault = #expect(throws: HistoryFault.self) {
            try replay.take(commit("tick", #"{"milliseconds":1,"name":"\#(name)"}"#), nil, scheduling: step)
        }
        let next = try replay.take(commit("note", #"{"text":"x"}"#), nil, scheduling: step)

        #expect(fault?.rejectionCode == "bad-schedule")
        #expect(String(decoding: next.patch, as: UTF8.self) == #"[{"op":"add","path":"/notes/0","value":"x"}]"#)
    }

    @Test("random commits, times and restores: what belongs to the state is that of its version", arguments: 1...6)
    func model(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        var pasts: [Snapshot] = [store.latest]
        var time: Int64 = 0
        let names = { (snapshot: Snapshot, isOfState: Bool) in
            var found: [String: Int64?] = [:]
            snapshot.schedule.visit {
                if $0.isOfState == isOfState { found["\($0.name.by ?? "-")/\($0.name.text)"] = $0.delay }
            }
            return found
        }
        for step in 0..<200 {
            let name = "n\(Int.random(in: 0..<4, using: &generator))"
            let subject = ["ada", nil].randomElement(using: &generator) ?? nil
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1: _ = store.submitNow(later(name, .random(in: 1...4000, using: &generator), by: subject))
            case 2: _ = store.submitNow(try scheduled(Ticker.Note(text: name), after: 2, name: name, by: subject))
            case 3: _ = store.submitNow(unscheduled(name, by: subject))
            case 4:
                time += .random(in: 0..<1500, using: &generator)
                store.turn(wall, to: time)
            default:
                let past = try #require(pasts.randomElement(using: &generator))
                let own = names(store.latest, false)
                _ = try restore(past, in: store)
                let expected = names(past, true).filter { own[$0.key] == nil }
                #expect(names(store.latest, true) == expected, "seed \(seed), step \(step)")
                #expect(names(store.latest, false) == own, "seed \(seed), step \(step)")
                store.latest.schedule.visit { action in
                    guard action.isOfState, let delay = action.delay else { return }
                    #expect(action.due.milliseconds == time + delay, "seed \(seed), step \(step)")
                }
            }
            pasts.append(store.latest)
        }
    }
}

@Suite("What reducers schedule", .timeLimit(.minutes(5)))
struct ReducerScheduleTests {
    private let wall = Wall()

    @Test("an action that is refused schedules nothing, also where others of its batch pass")
    func refused() throws {
        let store = try Store.ticker(wall)

        _ = store.submitNow(.of(Ticker.Later(text: "a", milliseconds: 5, isRefused: true)))
        _ = store.submitNow(
            .of(
                Ticker.Later(text: "b", milliseconds: 5), Ticker.Later(text: "c", milliseconds: 5, isRefused: true),
                form: .batch))
        #expect(store.latest.schedule.isEmpty)
        _ = store.submitNow(.of(Ticker.Later(text: "d", milliseconds: 5)))

        #expect(store.latest.schedule.count == 1)
    }

    @Test("what a middleware catches of a refused action schedules nothing")
    func caught() throws {
        let middleware = Middleware<Ticker.State> { action, _, next throws(Rejection) in
            do { try next(action) } catch { try next(Ticker.Note(text: "instead")) }
        }
        let store = try Store.ticker(wall, middleware: [middleware])

        _ = store.submitNow(.of(Ticker.Later(text: "a", milliseconds: 5, isRefused: true)))

        #expect(store.state.notes == ["instead"])
        #expect(store.latest.schedule.isEmpty)
    }

    @Test("unschedule takes back what the same subject has scheduled, and is no fault without it")
    func unschedule() throws {
        let store = try Store.ticker(wall)
        _ = store.submitNow(.of(Ticker.Later(text: "a", milliseconds: 5, name: "n")))

        _ = store.submitNow(Transaction([.init(Ticker.Forget(name: "n"))], subject: "eve"))
        #expect(store.latest.schedule.count == 1)
        _ = store.submitNow(.of(Ticker.Forget(name: "n")))
        #expect(store.latest.schedule.isEmpty)

        #expect(store.submitNow(.of(Ticker.Forget(name: "n"))).receipt != nil)
    }

    @Test("a time of zero is a follow-up, which counts in the budget of its cascade")
    func followUp() throws {
        var limits = StoreLimits()
        limits.cascadeDepthMax = 5
        let refusals = Collection<String>()
        let store = try Store.ticker(wall, limits: limits) {
            if case .followUpRefused(let refused, _) = $0 { refusals.add(refused.code) }
        }
        _ = store.submitNow(.of(Ticker.Tick(milliseconds: 0)))
        while !store.untyped.isAtRest { store.queue.sync {} }

        #expect(store.state.ticks.count == 6)
        #expect(refusals.values == ["cascade-over-budget"])
        #expect(store.latest.schedule.isEmpty)
    }

    @Test("an action that schedules itself without end comes once a second in the mean, however small its time")
    func rate() throws {
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        _ = store.submitNow(.of(Ticker.Tick(milliseconds: 1, name: "t")))
        for time in stride(from: Int64(0), through: 10_500, by: 100) { store.turn(wall, to: time) }

        #expect(store.state.ticks.count == 12)
        #expect(store.latest.schedule.count == 1)
        #expect(store.latest.schedule.first?.chain.count == 11)
    }

    @Test(
        "a time beyond the year 9999 is a rejection, however far it is, and one before the commit is now",
        arguments: [
            .seconds(9_300_000_000_000_000), .seconds(Int64.max), .seconds(Int64.max) + .seconds(Int64.max),
            .milliseconds(Int64.max), .seconds(253_402_300_800),
        ] as [Duration])
    func beyond(delay: Duration) throws {
        let store = try Store.ticker(wall)

        #expect(store.submitNow(.of(Ticker.After(delay: delay))).rejection?.code == "bad-schedule")
        let dryRun = Transaction.of(Ticker.After(delay: delay), purpose: .dryRun)
        #expect(store.untyped.dryRun(dryRun).rejection?.code == "bad-schedule")
        #expect(store.submitNow(.of(Ticker.After(delay: .zero - delay))).receipt != nil)
        #expect(store.submitNow(.of(Ticker.At(milliseconds: .max, name: nil))).rejection?.code == "bad-schedule")
        #expect(store.submitNow(.of(Ticker.At(milliseconds: .min, name: nil))).receipt != nil)
        #expect(store.latest.schedule.first?.due == wall.now)
    }

    @Test("a part of a millisecond is a whole one", arguments: [(1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2)])
    func parts(nanoseconds: Int, milliseconds: Int64) throws {
        let store = try Store.ticker(wall)

        _ = store.submitNow(.of(Ticker.After(delay: .nanoseconds(nanoseconds))))

        #expect(store.latest.schedule.first?.due.milliseconds == milliseconds)
    }

    @Test("an action that the domain does not have cannot be scheduled")
    func unknown() throws {
        struct Stranger: Action { static let type = "stranger" }
        struct Asking: Domain {
            struct State: StateType, Codable { var value = 0 }
            struct Ask: Action { static let type = "ask" }
            var reducer: some Reducer<State> {
                On(Ask.self) { _, _, context in context.schedule(Stranger(), after: .seconds(1)) }
            }
        }
        let store = try Store(Asking())

        #expect(store.submitNow(.of(Asking.Ask())).rejection?.code == "unknown-action")
        #expect(store.version == 0)
    }
}

@Suite("The schedule in a history")
struct ScheduleHistoryTests {
    private struct Model {
        var entries: [String: (due: Int64, version: Version, note: String)] = [:]
        var notes: [String] = []

        mutating func fire(at time: Int64) {
            let due = entries.filter { $0.value.due <= time }
                .sorted { ($0.value.due, $0.value.version) < ($1.value.due, $1.value.version) }
            for (key, entry) in due {
                notes.append(entry.note)
                entries[key] = nil
            }
        }
    }

    @Test(
        "random schedules, replacements, cancellations and times: the store is as a plain model, and so is each replay",
        arguments: 1...8)
    func model(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let wall = Wall()
        let domain = try CompiledDomain(Ticker())
        let initial = try domain.bytes(of: domain.initial)
        let store = try Store.ticker(wall)
        store.untyped.beginFiring()
        var model = Model()
        var time: Int64 = 1000
        for step in 0..<300 {
            wall.now = Timestamp(milliseconds: time)
            let (subject, name) = (
                ["ada", nil, "bob"].randomElement(using: &generator) ?? nil,
                "n\(Int.random(in: 0..<6, using: &generator))"
            )
            let key = "\(subject ?? "-")/\(name)"
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let seconds = Double(Int.random(in: 0..<4000, using: &generator)) / 1000
                let outcome = store.submitNow(
                    try scheduled(
                        Ticker.Note(text: "\(step)"), after: seconds, name: name, by: subject,
                        with: [nil, .file, .jwt].randomElement(using: &generator) ?? nil))
                model.entries[key] = (time + Int64(seconds * 1000), outcome.receipt?.version ?? 0, "\(step)")
            case 2:
                let outcome = store.submitNow(unscheduled(name, by: subject))
                #expect((outcome.receipt != nil) == (model.entries.removeValue(forKey: key) != nil), "seed \(seed)")
            case 3:
                _ = store.submitNow(.of(Ticker.Note(text: "now")))
                model.notes.append("now")
            default:
                time += Int64.random(in: 0..<1500, using: &generator)
                store.turn(wall, to: time)
                model.fire(at: time)
            }
            #expect(store.latest.schedule.count == model.entries.count, "seed \(seed), step \(step)")
        }
        #expect(store.state.notes == model.notes, "seed \(seed)")

        var patched = try PatchedState(parsing: initial, version: 0)
        var replay = try Replay(domain, from: initial, version: 0)
        for version in 1...store.version {
            let commit = try #require(store.hub.commit(version: version))
            _ = try patched.take(commit)
            _ = try replay.take(commit)
            if version == store.version / 2 {
                // A snapshot in the middle carries everything.
                patched = try PatchedState(parsing: patched.bytes(), version: version)
                replay = try Replay(domain, from: replay.bytes(), version: version)
            }
        }
        let saved = try store.latest.saved()
        #expect(patched.bytes() == saved, "seed \(seed)")
        #expect(try replay.bytes() == saved, "seed \(seed)")
    }

    @Test("a saved state without a schedule is the JSON of the state, as it has always been")
    func plain() throws {
        let saved = SavedState(Array("{}".utf8), ActionSchedule())

        #expect(saved.bytes == Array("{}".utf8))
        #expect(try SavedState(saved: saved.bytes).schedule.isEmpty)
    }

    @Test("the kind of the credential is recorded, and the judge is told of it; an older entry has none")
    func credentials() throws {
        let wall = Wall()
        let store = try Store.ticker(wall)
        let judged = Mutex<[CredentialKind?]>([])
        store.untyped.beginFiring(judge: { scheduled, _ in
            judged.withLock { $0.append(scheduled.credential) }
            return nil
        })
        for credential in [CredentialKind.file, .jwt, nil] {
            _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1, by: "ada", with: credential))
        }
        let saved = SavedState(Array("{}".utf8), store.latest.schedule)
        #expect(try SavedState(saved: saved.bytes).schedule == store.latest.schedule)
        #expect(String(decoding: saved.bytes, as: UTF8.self).contains(#""credential":"jwt""#))

        store.turn(wall, to: 1000)

        #expect(judged.withLock { $0 } == [.file, .jwt, nil])
        for (member, kind) in [("", nil), (#","credential":"jwt""#, .jwt), (#","credential":"x""#, nil)]
            as [(String, CredentialKind?)]
        {
            let json = #"[{"op":"add","name":"n","due":1,"version":3\#(member),"action":{"type":"note"}}]"#
            guard case .put(let action, _)? = try ScheduleChanges(Array(json.utf8)).changes.first else {
                Issue.record("nothing was scheduled")
                continue
            }
            #expect(action.credential == kind)
        }
    }

    @Test(
        "a chain that no store can have made is refused",
        arguments: [(0, true), (1 << 31, true), (1 << 31 + 1, false), (-1, false), (.max, false)] as [(Int64, Bool)])
    func chains(count: Int64, isTaken: Bool) {
        let json = #"[{"op":"add","name":"n","due":1,"version":3,"chain":\#(count),"action":{"type":"note"}}]"#

        let changes = try? ScheduleChanges(Array(json.utf8))

        #expect((changes != nil) == isTaken)
    }

    @Test("a time that a duration leads beyond the ends of all times is the end")
    func ends() {
        #expect(Timestamp(milliseconds: .max).advanced(by: .milliseconds(1)) == Timestamp(milliseconds: .max))
        #expect(Timestamp(milliseconds: .min).advanced(by: .seconds(-1)) == Timestamp(milliseconds: .min))
        #expect(Timestamp(milliseconds: -1).advanced(by: .milliseconds(2)) == Timestamp(milliseconds: 1))
        #expect(Timestamp(milliseconds: 5).advanced(by: .seconds(Int64.max)) == Timestamp(milliseconds: .max))
        #expect(Timestamp(milliseconds: -5).advanced(by: .seconds(Int64.min)) == Timestamp(milliseconds: .min))
        #expect((Instant(nanoseconds: 5) + .seconds(Int64.max)).nanoseconds == .max)
        #expect((Instant(nanoseconds: 5) + .nanoseconds(-7)).nanoseconds == -2)
    }

    @Test("a history whose clock once was at the end of all times goes on with one that is right again")
    func endOfHistory() {
        var clock = HistoryClock(Timestamp(milliseconds: .max))

        for (wall, nanoseconds) in [(1000, 0), (1500, 500_000_000), (9000, 8_000_000_000)] as [(Int64, Int64)] {
            let time = clock.read(wall: Timestamp(milliseconds: wall)) { Instant(nanoseconds: nanoseconds) }
            #expect(time.milliseconds == .max)
        }
    }

    @Test("another epoch spells the roots of scheduled actions anew")
    func epochs() throws {
        let (old, new) = (Epoch.random(), Epoch.random())
        let entry = ScheduledAction(
            name: ScheduledName("n", by: nil), due: Timestamp(milliseconds: 9), version: 3, index: 0,
            root: Cursor(old, 2).description, chain: .init(count: 1, since: Timestamp(milliseconds: 1)),
            action: Array(#"{"type":"note","payload":{"text":"a"}}"#.utf8), type: "note")
        var schedule = ActionSchedule()
        schedule.put(entry)
        let change = EpochChange(from: old, to: new)

        let copied = try SavedState(saved: change.saved(SavedState(Array("{}".utf8), schedule).bytes)).schedule
        let commit = change.commit(
            Commit(
                version: 3, time: Timestamp(milliseconds: 0), id: "x", types: ["later"], action: [], patch: [],
                schedule: ScheduleChanges([.put(entry, replacing: false)])))

        #expect(copied.first?.root == Cursor(new, 2).description)
        #expect(copied.first?.chain == entry.chain)
        #expect(text(commit.schedule?.json)?.contains(Cursor(new, 2).description) == true)
    }

    @Test("the places at and below a place are found, and no others")
    func places() {
        var schedule = ActionSchedule()
        for place in ["/a", "/a/b", "/a/b/c", "/ab", "/a~1b", "/b"] {
            schedule.put(
                ScheduledAction(
                    name: ScheduledName(place, by: nil, isPlace: true), due: Timestamp(milliseconds: 1), version: 1,
                    index: schedule.count, root: nil, chain: .init(count: 0, since: Timestamp(milliseconds: 0)),
                    action: [], type: "document/remove"))
        }

        #expect(schedule.places(atOrBelow: "/a").map(\.name.text) == ["/a", "/a/b", "/a/b/c"])
        #expect(schedule.places(atOrBelow: "/a/b").map(\.name.text) == ["/a/b", "/a/b/c"])
        #expect(schedule.places(atOrBelow: "").count == 6)
        #expect(schedule.places(atOrBelow: "/c").isEmpty)
    }
}
