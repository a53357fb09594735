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
        Store(
            domain: try CompiledDomain(Ticker()), middleware: middleware, limits: limits,
            origin: Origin(
                state: State(), cursor: Cursor(Core<Sample.State>.epoch, schedule.isEmpty ? 0 : 100),
                schedule: schedule),
            now: { wall.now }, journal: journal, report: report)
    }

    /// Dispatches what is due at a time, and returns when all of it has landed.
    fileprivate func turn(_ wall: Wall, to milliseconds: Int64) {
        wall.now = Timestamp(milliseconds: milliseconds)
        repeat {
            queue.sync { TurnMark.with(ObjectIdentifier(self)) { dispatchDue() } }
            while firing.withLock({ $0?.pendingCount ?? 0 }) > 0 { queue.sync {} }
        } while latest.schedule.first.map { $0.due <= wall.now } ?? false
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
        store.beginFiring()
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
        store.beginFiring()
        for (note, seconds) in [("c", 3.0), ("a", 1), ("b1", 2), ("b2", 2)] {
            _ = store.submitNow(try scheduled(Ticker.Note(text: note), after: seconds))
        }

        store.turn(wall, to: 9000)

        #expect(store.state.notes == ["a", "b1", "b2", "c"])
    }

    @Test("a name replaces and takes back what its subject has scheduled, and nothing of another subject")
    func names() throws {
        let store = try Store.ticker(wall)
        store.beginFiring()
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
        store.beginFiring(judge: { action, _ in action.id == "b" ? Rejection("token-revoked", "no token") : nil })
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
        store.beginFiring()
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
        store.beginFiring()
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1))
        isBroken.store(true, ordering: .relaxed)
        wall.now = Timestamp(milliseconds: 1000)
        store.queue.sync { TurnMark.with(ObjectIdentifier(store)) { store.dispatchDue() } }
        while store.firing.withLock({ $0?.pendingCount ?? 0 }) > 0 { store.queue.sync {} }
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
        store.beginFiring()
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1))

        store.onQueue {
            wall.now = Timestamp(milliseconds: 1000)
            store.dispatchDue()
            wall.now = Timestamp(milliseconds: 999)
            isBack.store(true, ordering: .relaxed)
            // Its commit makes the turn wait for the journal.
            store.submit(PendingTransaction(.of(Ticker.Note(text: "b"))) { _ in })
        }
        while store.firing.withLock({ $0?.pendingCount ?? 0 }) > 0 { store.queue.sync {} }
        store.turn(wall, to: 1000)

        #expect(store.state.notes == ["b", "a"])
        #expect(store.version == 3)
    }

    @Test("two stores on one journal commit each action once, whichever dispatches it")
    func twoWriters() throws {
        let journal = MemoryJournal(try CompiledDomain(Ticker()).bytes(of: Ticker.State()))
        let stores = [try Store.ticker(wall, journal: journal), try Store.ticker(wall, journal: journal)]
        for store in stores { store.beginFiring() }
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
        store.beginFiring()
        store.turn(wall, to: 61_000)

        #expect(reported.values == ["3 by 60.0 seconds"])
        #expect(store.state.notes == ["1.0", "2.0", "3.0"])
    }

    @Test("a store that has not begun dispatches nothing, and neither does a fork, which begins with nothing")
    func forks() throws {
        let journal = MemoryJournal(try CompiledDomain(Ticker()).bytes(of: Ticker.State()))
        let store = try Store.ticker(wall, journal: journal)
        _ = store.submitNow(try scheduled(Ticker.Note(text: "a"), after: 1, name: "n"))
        let source = Fork.Source(
            state: try journal.state(at: 0) ?? [], cursor: Cursor(Core<Sample.State>.epoch, 0), last: 1, skipped: [],
            insertions: [], time: wall.now)
        let advance = try store.fork(source, hasRoom: { _ in true }) {
            journal.commits(after: $0, through: .max, limit: 100)
        }
        let fork = try #require(try advance { true })
        let forked = try #require(fork.store as? Store<Ticker.State>)
        #expect(fork.appliedCount == 1)
        #expect(forked.latest.schedule.isEmpty)

        #expect(forked.submitNow(try scheduled(Ticker.Note(text: "b"), after: 1, name: "m")).receipt != nil)
        #expect(forked.latest.schedule.count == 1)
        for store in [store, forked] { store.turnWithoutWaiting(wall, to: 5000) }

        #expect(store.state.notes == [] && forked.state.notes == [])
    }

    @Test("above the most scheduled actions a further one is refused, and a replacement is not")
    func limit() throws {
        var limits = StoreLimits()
        limits.scheduleMax = 2
        let store = try Store.ticker(wall, limits: limits)
        for name in ["a", "b"] { _ = store.submitNow(try scheduled(Ticker.Note(text: name), after: 1, name: name)) }

        #expect(
            store.submitNow(try scheduled(Ticker.Note(text: "c"), after: 1, name: "c")).rejection?.code
                == "schedule-full")
        #expect(store.submitNow(.of(Ticker.Later(text: "d", milliseconds: 5))).rejection?.code == "schedule-full")
        #expect(store.submitNow(try scheduled(Ticker.Note(text: "B"), after: 2, name: "b")).receipt != nil)
        #expect(store.latest.schedule.count == 2)
    }
}

extension Store where State == Ticker.State {
    fileprivate func turnWithoutWaiting(_ wall: Wall, to milliseconds: Int64) {
        wall.now = Timestamp(milliseconds: milliseconds)
        queue.sync { TurnMark.with(ObjectIdentifier(self)) { dispatchDue() } }
        queue.sync {}
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
        while !store.isAtRest { store.queue.sync {} }

        #expect(store.state.ticks.count == 6)
        #expect(refusals.values == ["cascade-over-budget"])
        #expect(store.latest.schedule.isEmpty)
    }

    @Test("an action that schedules itself without end comes once a second in the mean, however small its time")
    func rate() throws {
        let store = try Store.ticker(wall)
        store.beginFiring()
        _ = store.submitNow(.of(Ticker.Tick(milliseconds: 1, name: "t")))
        for time in stride(from: Int64(0), through: 10_500, by: 100) { store.turn(wall, to: time) }

        #expect(store.state.ticks.count == 12)
        #expect(store.latest.schedule.count == 1)
        #expect(store.latest.schedule.first?.chain.count == 11)
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
        store.beginFiring()
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
        store.beginFiring(judge: { scheduled, _ in
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
    }

    @Test("another epoch spells the roots of scheduled actions anew")
    func epochs() throws {
        let (old, new) = (Epoch.random(), Epoch.random())
        let entry = ScheduledAction(
            name: ScheduledName("n", by: nil), due: Timestamp(milliseconds: 9), version: 3, index: 0,
            root: Cursor(old, 2).description, chain: .init(count: 1, since: Timestamp(milliseconds: 1)),
            action: Array(#"{"type":"note","payload":{"text":"a"}}"#.utf8), type: "note", id: nil)
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
                    action: [], type: "document/remove", id: nil))
        }

        #expect(schedule.places(atOrBelow: "/a").map(\.name.text) == ["/a", "/a/b", "/a/b/c"])
        #expect(schedule.places(atOrBelow: "/a/b").map(\.name.text) == ["/a/b", "/a/b/c"])
        #expect(schedule.places(atOrBelow: "").count == 6)
        #expect(schedule.places(atOrBelow: "/c").isEmpty)
    }
}
