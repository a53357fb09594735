import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

/// An event of a watch.
private enum Event: CaseIterable {
    case published, published2, prepared, decided, rejected, completed, ends, timer, writable, silent, draining

    /// Applies the event to a watch.
    func happen(to watch: inout Watch, at now: Instant) -> Watch.Action {
        switch self {
        case .published: return watch.published(6, at: now)
        case .published2: return watch.published(7, hasMore: true, at: now)
        case .prepared: return watch.prepared(.next, 6, hasMore: false, at: now)
        case .decided:
            return watch.decided(
                .committed(Receipt(Cursor(.random(), 6), ownID: nil, isChange: true, isReplay: false)))
        case .rejected: return watch.decided(.nothingCommitted)
        case .completed: return watch.completed()
        case .ends: return watch.ends()
        case .timer: return watch.timer(at: now)
        case .writable: return watch.writable(at: now)
        case .silent: return watch.silent(examined: 6, at: now)
        case .draining: return watch.draining()
        }
    }
}

extension Watch {
    fileprivate static func sample(
        isStream: Bool, state: State, subject: Subject = .changes(ChangesQuery(since: 0)),
        debounce: Duration? = nil
    ) -> Watch {
        let (log, request) = (DeliveryLog(), DeliveryLog.Request(1))
        var watch = Watch(
            1, client: "a", receiver: log, request: request, subject: subject, examinedVersion: 5, debounce: debounce)
        if isStream { watch = watch.ofStream(endsAt: Instant(nanoseconds: 0) + .seconds(900)) }
        watch.state = state
        if isStream { (watch.isBehind, watch.chunk) = (false, .next) }
        return watch
    }
}

@Suite("A watch")
struct WatchTests {
    private static let now = Instant(nanoseconds: 1_000_000_000)

    /// For each state and event of a watch that is answered once, the next state and the action.
    private static let once: [(Watch.State, Event, Watch.State, Watch.Action)] = [
        (.preparing, .published, .preparing, .nothing), (.preparing, .published2, .preparing, .nothing),
        (.preparing, .prepared, .done, .answer), (.preparing, .decided, .preparing, .nothing),
        (.preparing, .rejected, .done, .answer), (.preparing, .completed, .done, .answer),
        (.preparing, .ends, .done, .answerTimedOut), (.preparing, .timer, .preparing, .nothing),
        (.preparing, .writable, .preparing, .nothing), (.preparing, .silent, .preparing, .nothing),
        (.preparing, .draining, .done, .answerTimedOut),

        (.parked, .published, .done, .answer), (.parked, .published2, .done, .answer),
        (.parked, .prepared, .parked, .nothing), (.parked, .decided, .parked, .nothing),
        (.parked, .rejected, .done, .answer), (.parked, .completed, .done, .answer),
        (.parked, .ends, .done, .answerTimedOut), (.parked, .timer, .parked, .nothing),
        (.parked, .writable, .parked, .nothing), (.parked, .silent, .parked, .nothing),
        (.parked, .draining, .done, .answerTimedOut),

        (.debouncing, .published, .debouncing, .nothing), (.debouncing, .published2, .debouncing, .nothing),
        (.debouncing, .prepared, .debouncing, .nothing), (.debouncing, .decided, .debouncing, .nothing),
        (.debouncing, .rejected, .done, .answer), (.debouncing, .completed, .done, .answer),
        (.debouncing, .ends, .done, .answer), (.debouncing, .timer, .done, .answer),
        (.debouncing, .writable, .debouncing, .nothing), (.debouncing, .silent, .debouncing, .nothing),
        (.debouncing, .draining, .done, .answer),
    ]

    /// The same table for a stream that has sent a chunk.
    private static let stream: [(Watch.State, Event, Watch.State, Watch.Action)] = [
        (.preparing, .published, .preparing, .nothing), (.preparing, .published2, .preparing, .nothing),
        (.preparing, .prepared, .sending, .send(.next)), (.preparing, .ends, .done, .end),
        (.preparing, .timer, .preparing, .nothing), (.preparing, .writable, .preparing, .nothing),
        (.preparing, .silent, .preparing, .nothing), (.preparing, .draining, .done, .end),

        (.parked, .published, .sending, .send(.next)), (.parked, .published2, .sending, .send(.next)),
        (.parked, .prepared, .parked, .nothing), (.parked, .ends, .done, .end),
        (.parked, .timer, .parked, .nothing), (.parked, .writable, .parked, .nothing),
        (.parked, .silent, .sending, .heartbeat(movedTo: 6)), (.parked, .draining, .done, .end),

        (.debouncing, .published, .debouncing, .nothing), (.debouncing, .published2, .debouncing, .nothing),
        (.debouncing, .prepared, .debouncing, .nothing), (.debouncing, .ends, .done, .end),
        (.debouncing, .timer, .sending, .examine), (.debouncing, .writable, .debouncing, .nothing),
        (.debouncing, .silent, .debouncing, .nothing), (.debouncing, .draining, .done, .end),

        (.sending, .published, .sending, .nothing), (.sending, .published2, .sending, .nothing),
        (.sending, .prepared, .sending, .nothing), (.sending, .ends, .done, .end),
        (.sending, .timer, .sending, .nothing), (.sending, .writable, .parked, .nothing),
        (.sending, .silent, .sending, .nothing), (.sending, .draining, .sending, .nothing),
    ]

    @Test(
        "each event of a watch that is answered once leads from each state to the state of the table",
        arguments: once.indices
    )
    func waits(row: Int) {
        let (before, event, after, expected) = Self.once[row]
        var watch = Watch.sample(isStream: false, state: before)

        let action = event.happen(to: &watch, at: Self.now)

        #expect(watch.state == after, "\(before) \(event)")
        #expect(action == expected, "\(before) \(event)")
    }

    @Test("a stream that begins with a snapshot prepares one page after the other, and then goes on with commits")
    func snapshot() {
        var watch = Watch.sample(isStream: true, state: .sending)
        (watch.isBehind, watch.chunk) = (true, .snapshot(isLast: false))

        for isLast in [false, false, true] {
            #expect(watch.writable(at: Self.now) == .examine)
            #expect(watch.chunk == .snapshot(isLast: false))
            #expect(watch.prepares(.snapshot(isLast: false)) == .prepare(.snapshot(isLast: false)))
            let sent = watch.prepared(.snapshot(isLast: isLast), 5, hasMore: !isLast, at: Self.now)
            #expect(sent == .send(.snapshot(isLast: isLast)))
        }

        #expect(watch.chunk == .next)
        #expect(watch.writable(at: Self.now) == .nothing)
        #expect(watch.state == .parked)
    }

    @Test("a stream whose chunk ends before what the hub has given examines the rest next")
    func returns() {
        var watch = Watch.sample(isStream: true, state: .parked)
        #expect(watch.published(9, at: Self.now) == .send(.next))

        watch.returns(to: 7)

        #expect(watch.writable(at: Self.now) == .examine)
        #expect(watch.examinedVersion == 7)
        var other = Watch.sample(isStream: true, state: .parked)
        other.returns(to: 3)
        #expect(other.examinedVersion == 5)
    }

    @Test("what is published while a snapshot is read comes behind its last page")
    func publishedDuringSnapshot() {
        var watch = Watch.sample(isStream: true, state: .preparing)
        watch.chunk = .snapshot(isLast: false)

        #expect(watch.published(6, at: Self.now) == .nothing)
        #expect(
            watch.prepared(.snapshot(isLast: true), 5, hasMore: false, at: Self.now) == .send(.snapshot(isLast: true)))

        #expect(watch.writable(at: Self.now) == .examine)
        #expect(watch.chunk == .next)
    }

    @Test("each event of a stream leads from each state to the state of the table", arguments: stream.indices)
    func streams(row: Int) {
        let (before, event, after, expected) = Self.stream[row]
        var watch = Watch.sample(isStream: true, state: before)

        let action = event.happen(to: &watch, at: Self.now)

        #expect(watch.state == after, "\(before) \(event)")
        #expect(action == expected, "\(before) \(event)")
    }

    @Test("no event changes a watch that is done", arguments: [false, true])
    func done(isStream: Bool) {
        for event in Event.allCases {
            var watch = Watch.sample(isStream: isStream, state: .done)

            let action = event.happen(to: &watch, at: Self.now)

            #expect(watch.state == .done, "\(event)")
            #expect(action == .nothing, "\(event)")
        }
    }

    @Test("the tables have each pair of a state and an event")
    func complete() {
        let pairs = { (rows: [(Watch.State, Event, Watch.State, Watch.Action)]) in Set(rows.map { "\($0.0) \($0.1)" }) }
        let ofOnce: [Watch.State] = [.preparing, .parked, .debouncing]
        let ofStreams: [Watch.State] = [.preparing, .parked, .debouncing, .sending]
        // A stream waits for no outcome and no cascade.
        let events = Event.allCases.filter { ![.decided, .rejected, .completed].contains($0) }

        #expect(pairs(Self.once) == Set(ofOnce.flatMap { state in Event.allCases.map { "\(state) \($0)" } }))
        #expect(pairs(Self.stream) == Set(ofStreams.flatMap { state in events.map { "\(state) \($0)" } }))
    }

    @Test("a version that the watch has examined has no effect", arguments: [false, true])
    func stale(isStream: Bool) {
        var watch = Watch.sample(isStream: isStream, state: .parked)

        #expect(watch.published(5, at: Self.now) == .nothing)
        #expect(watch.state == .parked)
    }

    @Test("a debounced stream waits after each chunk, but not where more is available at once")
    func debouncedStream() {
        var watch = Watch.sample(isStream: true, state: .parked, debounce: .milliseconds(50))

        #expect(watch.published(6, hasMore: true, at: Self.now) == .send(.next))
        #expect(watch.writable(at: Self.now) == .examine)
        #expect(watch.found(7, hasMore: false, at: Self.now) == .send(.next))
        #expect(watch.writable(at: Self.now) == .startTimer(.milliseconds(50)))
        #expect(watch.timer(at: Self.now) == .examine)
    }

    @Test("a stream examines what was published during a chunk when the chunk is written")
    func behind() {
        var watch = Watch.sample(isStream: true, state: .parked)
        _ = watch.published(6, at: Self.now)

        #expect(watch.published(7, at: Self.now) == .nothing)
        #expect(watch.writable(at: Self.now) == .examine)
        // A commit is published between the read and its result.
        #expect(watch.published(8, at: Self.now) == .nothing)
        #expect(watch.found(7, hasMore: false, at: Self.now) == .send(.next))
        #expect(watch.writable(at: Self.now) == .examine)
    }

    @Test("a client is slow when it was up to date and then takes too long for a chunk")
    func slow() {
        var watch = Watch.sample(isStream: true, state: .parked)
        watch.isLive = true
        _ = watch.published(6, at: Self.now)
        _ = watch.published(7, at: Self.now)

        #expect(watch.writable(at: Self.now + Watch.patience + .seconds(1)) == .examine)
        #expect(watch.isSlow)

        var catchingUp = Watch.sample(isStream: true, state: .sending)
        catchingUp.isBehind = true
        _ = catchingUp.writable(at: Self.now)
        _ = catchingUp.found(6, hasMore: true, at: Self.now)
        _ = catchingUp.writable(at: Self.now + Watch.patience + .seconds(1))
        #expect(!catchingUp.isSlow)
    }

    @Test(
        "random events answer an exchange at most once, and a stream never sends two chunks at once",
        arguments: 0..<200)
    func sequences(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        let isStream = seed.isMultiple(of: 2)
        var watch = Watch.sample(
            isStream: isStream, state: .parked, debounce: seed.isMultiple(of: 3) ? .milliseconds(50) : nil)
        var (answers, chunksOnTheWay, isTimerSet, hasEnded) = (0, 0, false, false)
        var newest: Version = 5
        var sent: Version = 5
        var now = Self.now

        for _ in 0..<200 where watch.state != .done {
            now = now + .milliseconds(Int.random(in: 0..<100, using: &generator))
            var action: Watch.Action
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<45:
                newest += Version.random(in: 0...2, using: &generator)
                action = watch.published(newest, at: now)
            // A transport reports a write only while it sends.
            case 45..<75 where chunksOnTheWay == 1:
                chunksOnTheWay = 0
                action = watch.writable(at: now)
            case 75..<90 where isTimerSet:
                isTimerSet = false
                action = watch.timer(at: now)
            case 90..<96: action = watch.silent(examined: newest, at: now)
            case 96: action = watch.ends()
            case 97: action = watch.draining()
            default: action = .nothing
            }
            if action == .examine {
                // The test examines as the hub does: there is something newer, or the stream parks.
                if newest > sent {
                    action = watch.found(newest, hasMore: false, at: now)
                } else {
                    watch.parks(examined: newest)
                    action = .nothing
                }
            }
            switch action {
            case .answer, .answerTimedOut: answers += 1
            case .send:
                chunksOnTheWay += 1
                let position = watch.examinedVersion ?? 0
                #expect(position > sent, "seed \(seed): a chunk tells something new")
                sent = position
            case .heartbeat(let moved):
                chunksOnTheWay += 1
                if let moved { sent = moved }
            case .startTimer: isTimerSet = true
            case .end: hasEnded = true
            case .nothing, .examine, .prepare: break
            }
            #expect(chunksOnTheWay <= 1, "seed \(seed)")
            #expect((watch.state == .sending) == (chunksOnTheWay == 1) || watch.state == .done, "seed \(seed)")
            #expect((watch.state == .debouncing) == isTimerSet || watch.state == .done, "seed \(seed)")
            if watch.state == .parked { #expect(!watch.isBehind, "seed \(seed): nothing is left behind") }
        }

        #expect(answers <= 1 && (!isStream || answers == 0), "seed \(seed)")
        #expect(!hasEnded || watch.state == .done, "seed \(seed)")
    }
}
