import Synchronization
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Turns in flight", .timeLimit(.minutes(5)))
struct PipelineTests {
    /// A queue that runs what it was given when a test says so.
    private final class ManualQueue: Sendable {
        private let work = Mutex<[@Sendable () -> Void]>([])
        var isEmpty: Bool { work.withLock { $0.isEmpty } }
        func add(_ work: @escaping @Sendable () -> Void) { self.work.withLock { $0.append(work) } }
        func run() {
            while let next = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { next() }
        }
    }

    private struct DiskFull: Error {}

    private func store(
        _ journal: (any Journal)?, on queue: ManualQueue, middleware: [Middleware<Sample.State>] = [.validation],
        limits: StoreLimits = StoreLimits()
    ) throws -> Store<Sample.State> {
        UntypedStore(
            domain: try CompiledDomain(Sample()), middleware: middleware.map(\.step), limits: limits,
            origin: .init(state: .of(Sample.State()), cursor: Cursor(Core.sampleEpoch, 0)),
            now: { Timestamp(milliseconds: 0) }, journal: journal, onLandingThread: { queue.add($0) }
        ).typed(Sample.State.self)
    }

    @Test("until a turn has landed nothing of it is seen, and no outcome that depends on it is answered")
    func unseen() throws {
        let queue = ManualQueue()
        let store = try store(HookedJournal { _ in }, on: queue)
        let (outcomes, seen) = (Collection<String>(), Collection<Version>())
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.old != nil { seen.add($0.version) } })
        defer { token.cancel() }
        let dryRun = Transaction.of(Sample.Add(amount: 1), purpose: .dryRun)
        let conditional = Transaction.of(
            Sample.Add(amount: 1), expectations: [.init(JSONPointer(["count", "value"]), .value(.integer(9)))])
        let generation = store.hub.generation

        for (name, transaction) in [
            ("commit", Transaction.of(Sample.Add(amount: 1), key: "k", body: "b")),
            ("second", .of(Sample.Add(amount: 1))), ("refused", .of(Sample.Add(amount: -9))),
            ("replay", .of(Sample.Add(amount: 1), key: "k", body: "b")),
            ("reuse", .of(Sample.Add(amount: 1), key: "k", body: "c")), ("dry run", dryRun),
            ("conditional", conditional),
        ] {
            store.enqueue(PendingTransaction(transaction) { _ in outcomes.add(name) })
            store.flushNow()
        }

        #expect(outcomes.values.isEmpty)
        #expect(seen.values.isEmpty)
        #expect(store.version == 0 && store.state.count.value == 0)
        #expect(store.hub.generation == generation && store.hub.commit(version: 1) == nil)
        #expect(store.untyped.waitingCount == 7)
        queue.run()
        #expect(outcomes.values == ["commit", "second", "refused", "replay", "reuse", "dry run", "conditional"])
        #expect(seen.values == [1, 2])
        #expect(store.version == 2 && store.untyped.waitingCount == 0)
    }

    @Test("with nothing in flight a refusal is answered at once")
    func refusalAtOnce() throws {
        let queue = ManualQueue()
        let store = try store(HookedJournal { _ in }, on: queue)
        let outcomes = Collection<Outcome>()

        store.enqueue(PendingTransaction(.of(Sample.Add(amount: -1))) { outcomes.add($0) })
        store.flushNow()

        #expect(outcomes.values.first?.rejection?.code == "negative")
        #expect(queue.isEmpty)
    }

    @Test("turns that wait for the same landing are one append, and each commit is notified of with its own state")
    func grouped() throws {
        let queue = ManualQueue()
        let (appends, seen) = (Collection<[Version]>(), Collection<[Int]>())
        let store = try store(HookedJournal { appends.add($0.map(\.version)) }, on: queue)
        let token = store.subscribe(
            changesOf: { $0.select(\.count.value) }, notify: { seen.add([$0.old ?? -1, $0.new]) })
        defer { token.cancel() }

        for amount in 1...4 {
            store.enqueue(PendingTransaction(.of(Sample.Add(amount: amount))) { _ in })
            store.flushNow()
        }
        queue.run()

        #expect(appends.values == [[1, 2, 3, 4]])
        #expect(seen.values == [[-1, 0], [0, 1], [1, 3], [3, 6], [6, 10]])
    }

    @Test("of turns in flight only those of the append are of unknown outcome; what waits behind them is not recorded")
    func unknownOutcomes() throws {
        let queue = ManualQueue()
        let outcomes = [Collection<Outcome>(), Collection<Outcome>(), Collection<Outcome>()]
        let whileAppending = Mutex<@Sendable () -> Void>({})
        let store = try store(
            HookedJournal { _ in
                whileAppending.withLock { $0 }()
                throw UnknownOutcome()
            }, on: queue)
        let post = { @Sendable [store] (index: Int, transaction: Transaction) in
            store.enqueue(PendingTransaction(transaction) { outcomes[index].add($0) })
            store.flushNow()
        }
        whileAppending.withLock {
            $0 = {
                post(1, .of(Sample.Add(amount: 2)))
                post(2, .of(Sample.Add(amount: 1), key: "k"))
            }
        }

        post(0, .of(Sample.Add(amount: 1), key: "k"))
        queue.run()

        // The replay of a commit of unknown outcome is of unknown outcome, too.
        guard case .unknown? = outcomes[0].values.first, case .notRecorded? = outcomes[1].values.first,
            case .unknown? = outcomes[2].values.first
        else { Issue.record("\(outcomes.map(\.values))"); return }
        #expect(store.version == 0)
    }

    @Test("a turn that does not land causes nothing: no follow-up, no cascade, no room taken")
    func causesNothing() throws {
        let queue = ManualQueue()
        let isFull = Mutex(true)
        let answering = Middleware<Sample.State> { action, context, next throws(Rejection) in
            try next(action)
            if action is Sample.Add { context.dispatch(Sample.Both(id: 1)) }
        }
        let store = try store(
            HookedJournal { _ in if isFull.withLock({ $0 }) { throw DiskFull() } }, on: queue, middleware: [answering],
            limits: StoreLimits(mailboxMax: 2))
        let (notified, completed) = (Collection<Version>(), Collection<CascadeReport>())
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.old != nil { notified.add($0.version) } })
        defer { token.cancel() }
        func post() -> Collection<Outcome> {
            let outcomes = Collection<Outcome>()
            let pending = PendingTransaction(.of(Sample.Add(amount: 1))) {
                outcomes.add($0)
            } completed: {
                completed.add($1)
            }
            store.enqueue(pending)
            store.flushNow()
            return outcomes
        }

        let failed = [post(), post()]
        let full = post()
        queue.run()
        isFull.withLock { $0 = false }
        let landed = post()
        queue.run()
        store.onQueue {}
        queue.run()

        guard case .full? = full.values.first, full.values.count == 1 else { Issue.record("\(full.values)"); return }
        for outcomes in failed {
            guard case .notRecorded? = outcomes.values.first else { Issue.record("\(outcomes.values)"); return }
        }
        #expect(landed.values.first?.receipt?.version == 1)
        #expect(notified.values == [1, 2])
        #expect(completed.values.map(\.causedCount) == [1])
        #expect(store.state.count.value == 2 && store.state.items.marked == [1])
    }

    /// What a run has submitted, and what has become of it.
    private struct Run {
        var transactions: [Transaction] = []
        var outcomes: [Int: Outcome] = [:]
        var appends = 0
    }

    /// Submits random transactions; more arrive, and are computed, during each append.
    ///
    /// - Parameter append: takes the number of the append, before the journal takes the commits.
    private func run(
        seed: UInt64, journal: (@escaping @Sendable ([Commit]) throws -> Void) -> any Journal,
        append: @escaping @Sendable (Int) throws -> Void
    ) throws -> (run: Run, store: Store<Sample.State>, notified: [Version]) {
        let queue = ManualQueue()
        let run = Mutex(Run())
        let generator = Mutex(SplitMix(seed: seed))
        let stored = Mutex<Store<Sample.State>?>(nil)
        let feed: @Sendable (Int) -> Void = { turns in
            guard let store = stored.withLock({ $0 }) else { return }
            for _ in 0..<turns {
                let batch = generator.withLock { generator in
                    (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                        Self.transaction(using: &generator)
                    }
                }
                for transaction in batch {
                    let number = run.withLock { run in
                        run.transactions.append(transaction)
                        return run.transactions.count - 1
                    }
                    store.enqueue(
                        PendingTransaction(transaction) { outcome in
                            run.withLock { run in
                                if run.outcomes.updateValue(outcome, forKey: number) != nil {
                                    Issue.record("the transaction \(number) was answered twice")
                                }
                            }
                        })
                }
                store.flushNow()
            }
        }
        let store = try store(
            journal { _ in
                let number = run.withLock { run in
                    run.appends += 1
                    return run.appends
                }
                if number < 12 { feed(Int(seed % 3) + 1) }
                try append(number)
            }, on: queue)
        stored.withLock { $0 = store }
        let notified = Collection<Version>()
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.old != nil { notified.add($0.version) } })
        for _ in 0..<8 {
            feed(2)
            queue.run()
            store.onQueue {}
        }
        token.cancel()
        stored.withLock { $0 = nil }
        return (run.withLock { $0 }, store, notified.values)
    }

    private static func transaction(using generator: inout SplitMix) -> Transaction {
        let action = Sample.anything(using: &generator)
        var idempotency: (key: IdempotencyKey, fingerprint: String)?
        var expectations: [Transaction.Expectation] = []
        if Int.random(in: 0..<3, using: &generator) == 0 {
            let key = Int.random(in: 0..<6, using: &generator)
            idempotency = ("\(key)", "\(Int.random(in: 0..<3, using: &generator) == 0)")
        }
        if Int.random(in: 0..<4, using: &generator) == 0 {
            let value = Int64.random(in: 0..<4, using: &generator)
            expectations = [.init(JSONPointer(["count", "value"]), .value(.integer(value)))]
        }
        let isDryRun = Int.random(in: 0..<6, using: &generator) == 0
        return Transaction(
            [.init(action)], purpose: isDryRun ? .dryRun : .commit, expectations: expectations,
            idempotency: idempotency)
    }

    /// An outcome as text, so that two can be compared.
    private static func text(_ outcome: Outcome?) -> String {
        switch outcome {
        case .committed(let receipt)?: "\(receipt.version) \(receipt.id) \(receipt.isChange) \(receipt.isReplay)"
        case .wouldCommit(let isChange, let patch)?: "would \(isChange) \(String(decoding: patch ?? [], as: UTF8.self))"
        case .rejected(let rejection, let index)?: "rejected \(rejection.code) \(index)"
        case .preconditionFailed(let failure)?: "precondition \(failure.pointer)"
        case .keyReused(let key)?: "reused \(key)"
        case .notRecorded?: "not recorded"
        case let other: "\(String(describing: other))"
        }
    }

    @Test(
        "an append that fails takes back all that is in flight, and the rest is as if one transaction came after the other",
        arguments: 1...14)
    func failures(failing: Int) throws {
        for seed in 0..<UInt64(24) {
            let journal = Mutex<HookedJournal?>(nil)
            let (run, store, notified) = try self.run(
                seed: seed,
                journal: { hook in
                    let hooked = HookedJournal(hook)
                    journal.withLock { $0 = hooked }
                    return hooked
                },
                append: { if $0 == failing { throw DiskFull() } })
            let kept = journal.withLock { $0?.commits(after: 0, through: .max, limit: .max) ?? [] }

            let model = try Core.sample()
            for (number, transaction) in run.transactions.enumerated() {
                let outcome = run.outcomes[number]
                if case .notRecorded? = outcome { continue }
                let expected = model.run([transaction]).outcomes[0]
                #expect(Self.text(outcome) == Self.text(expected), "transaction \(number), seed \(seed)")
            }
            let lost = run.outcomes.values.count { if case .notRecorded = $0 { true } else { false } }
            #expect((lost > 0) == (run.appends >= failing))
            #expect(run.outcomes.count == run.transactions.count)
            #expect(try store.latest.whole() == (model.domain.bytes(of: model.state)))
            #expect(kept.map(\.version) == Array(1..<(store.version + 1)))
            #expect(notified == kept.map(\.version))
            #expect(store.untyped.waitingCount == 0)
        }
    }

    @Test("where another writer appends first, all that is in flight is computed again behind its commits")
    func foreign() throws {
        for seed in 0..<UInt64(24) {
            let shared = MemoryJournal(try CompiledDomain(Sample()).bytes(of: .of(Sample.State())))
            let other = try Store.sample(journal: shared)
            let (run, store, notified) = try self.run(
                seed: seed, journal: { HookedJournal($0, on: shared) },
                append: { number in
                    guard number.isMultiple(of: 3) else { return }
                    // The other store adopts what this one has appended, and then appends first.
                    _ = other.submitNow(.of(Sample.Add(amount: 1)))
                })
            other.onQueue {}

            let kept = shared.commits(after: 0, through: .max, limit: .max)
            #expect(kept.map(\.version) == Array(1...shared.latestVersion))
            #expect(notified == kept.map(\.version))
            let domain = try CompiledDomain(Sample())
            let patched = try domain.state(from: shared.state(at: shared.latestVersion)?.state ?? [])
            #expect(try store.latest.whole() == domain.bytes(of: patched))
            #expect(run.outcomes.count == run.transactions.count)
            var made: Set<Version> = []
            for (number, outcome) in run.outcomes {
                if case .notRecorded = outcome { Issue.record("transaction \(number) was not recorded, seed \(seed)") }
                guard let receipt = outcome.receipt, !receipt.isReplay else { continue }
                #expect(made.insert(receipt.version).inserted)
                #expect(kept[Int(receipt.version) - 1].types == receipt.types)
            }
            #expect(kept.count - made.count == run.appends / 3)
        }
    }

    @Test("a commit that another writer appends while turns are in flight is adopted after they have landed")
    func missed() throws {
        let shared = MemoryJournal(try CompiledDomain(Sample()).bytes(of: .of(Sample.State())))
        let queue = ManualQueue()
        let store = try store(shared, on: queue)
        let other = try Store.sample(journal: shared)
        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in })
        store.flushNow()

        _ = other.submitNow(.of(Sample.Add(amount: 5)))
        store.onQueue {}
        let before = store.version
        queue.run()

        #expect(before == 0)
        #expect(store.version == 2 && store.state.count.value == 6)
    }

    @Test(
        "a commit of another writer that does not fit the domain stops the following, and nothing is committed behind it"
    )
    func misfit() throws {
        let shared = MemoryJournal(try CompiledDomain(Sample()).bytes(of: .of(Sample.State())))
        let queue = ManualQueue()
        let store = try store(shared, on: queue)
        let unknown = Commit(
            version: 1, time: Timestamp(milliseconds: 0), id: "x", types: ["new/add"], action: Array("{}".utf8),
            patch: Array(#"[{"op":"add","path":"/new","value":1}]"#.utf8))
        let before = store.untyped.lostHistory?.failure.code
        _ = shared.append([unknown], after: 0)
        store.onQueue {}

        let outcome = Mutex<Outcome?>(nil)
        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { result in outcome.withLock { $0 = result } })
        store.flushNow()
        queue.run()

        #expect(before == nil)
        #expect(store.untyped.lostHistory?.failure.code == "domain-mismatch")
        #expect(store.untyped.lostHistory?.failure.detail.contains("version 1") ?? false)
        #expect(store.version == 0 && shared.latestVersion == 1)
        guard case .notRecorded? = outcome.withLock(\.self) else {
            Issue.record("the outcome is \(String(describing: outcome.withLock(\.self)))")
            return
        }
    }
}
