import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Nested dispatch", .timeLimit(.minutes(5)))
struct NestedDispatchTests {
    @Test(
        "each subscriber gets S1 and then S2 once, whichever subscriber dispatches in the notification of S1",
        arguments: 0..<5)
    func everyPosition(position: Int) throws {
        let store = try Store(Plain())
        let seen = (0..<5).map { _ in Collection<(Int?, Int)>() }
        let tokens = (0..<5).map { index in
            store.subscribe(
                changesOf: { $0.select(\.other) },
                notify: { [weak store] change in
                    seen[index].add((change.old, change.new))
                    guard index == position, change.new == 1 else { return }
                    _ = try? store?.dispatch(Plain.SetOther(other: 2))
                })
        }

        try store.dispatch(Plain.SetOther(other: 1))
        store.drain()

        for changes in seen {
            #expect(changes.values.map(\.0) == [nil, 0, 1])
            #expect(changes.values.map(\.1) == [0, 1, 2])
        }
        withExtendedLifetime(tokens) {}
    }

    @Test("a dispatch inside a notification returns that it is queued, and its commit has its cause and its root")
    func causation() async throws {
        let store = try Store(Plain())
        let (results, commits) = (Collection<Dispatched>(), Collection<Commit>())
        let token = store.subscribe(
            changesOf: { $0.select(\.other) },
            notify: { [weak store] change in
                if let commit = change.commit { commits.add(commit) }
                guard (1..<4).contains(change.new), let store else { return }
                if let result = try? store.dispatch(Plain.SetOther(other: change.new + 1)) { results.add(result) }
            })

        let dispatched = try await store.dispatch(Plain.SetOther(other: 1), awaiting: .cascade)
        let report = try #require(dispatched.cascade)

        let ids = commits.values.map(\.id)
        #expect(results.values.allSatisfy { if case .queued = $0.result { true } else { false } })
        #expect(commits.values.map(\.cause) == [nil, ids[0], ids[1], ids[2]])
        #expect(commits.values.map(\.root) == [nil, ids[0], ids[0], ids[0]])
        #expect(dispatched.receipt?.version == 1)
        #expect(report.isComplete)
        #expect(report.caused.map(\.version) == [2, 3, 4])
        withExtendedLifetime(token) {}
    }

    @Test("a chain of 100,000 follow-ups uses no stack, and another client's actions are committed meanwhile")
    func chain() async throws {
        let length = 100_000
        let store = try Store(Plain())
        let token = store.subscribe(
            changesOf: { $0.select(\.other) },
            notify: { [weak store] change in
                guard (1..<length).contains(change.new) else { return }
                _ = try? store?.dispatch(Plain.SetOther(other: change.new + 1))
            })
        // Another client with four actions under way, which posts the next as soon as one is answered, so that
        // the scheduling of threads does not matter.
        let others = Mutex((done: 0, longestWait: Version(0)))
        @Sendable func post(after before: Version?) {
            store.submit(
                PendingTransaction(Transaction([.init(Plain.SetText(text: "other"))])) { outcome in
                    guard case .committed(let receipt) = outcome else { return }
                    let isEnough = others.withLock { others in
                        others.done += 1
                        others.longestWait = max(others.longestWait, receipt.version - (before ?? receipt.version))
                        return others.done > length / 10
                    }
                    if !isEnough { post(after: store.version) }
                })
        }

        async let settled = store.dispatch(Plain.SetOther(other: 1), awaiting: .cascade)
        for _ in 0..<4 { post(after: nil) }
        let report = try #require(try await settled.cascade)

        #expect(store.state.other == length)
        #expect(report.causedCount == length - 1)
        let (done, longestWait) = others.withLock(\.self)
        // Turn by turn: an action of the client waits for one or two turns of the chain, not for its end. Before it come
        // at most the client's other actions and the commits of those turns.
        #expect(longestWait <= 4 + 3)
        #expect(done > length / 10)
        withExtendedLifetime(token) {}
    }

    @Test("a follow-up deeper than the budget is refused and reported with its root, and the commits before it remain")
    func depth() async throws {
        let events = Collection<StoreEvent>()
        var limits = StoreLimits()
        limits.cascadeDepthMax = 5
        let store = try Store(Plain(), limits: limits, report: { events.add($0) })
        let token = store.subscribe(\.other) { [weak store] other in
            if other > 0 { _ = try? store?.dispatch(Plain.SetOther(other: other + 1)) }
        }

        let dispatched = try await store.dispatch(Plain.SetOther(other: 1), awaiting: .cascade)
        let report = try #require(dispatched.cascade)
        let later = try await store.dispatch(Plain.SetText(text: "still alive"))

        #expect(store.state.other == 6)
        #expect(report.causedCount == 5)
        #expect(report.refused.map(\.code) == ["cascade-over-budget"])
        #expect(report.refused.first?.type == "other/set")
        guard case .followUpRefused(_, let root)? = events.values.first else { Issue.record("no event"); return }
        #expect(events.values.count == 1)
        #expect(root == dispatched.receipt?.id)
        #expect(later.receipt?.version == 7)
        withExtendedLifetime(token) {}
    }

    @Test("a cascade with more actions than its budget is refused")
    func count() async throws {
        var limits = StoreLimits()
        limits.cascadeActionsMax = 100
        let store = try Store(Plain(), limits: limits)
        let token = store.subscribe(
            changesOf: { $0.select(\.other) },
            notify: { [weak store] change in
                guard change.old != nil else { return }
                for _ in 0..<2 {
                    _ = try? store?.dispatch(.creator { state, _ in Plain.SetOther(other: state.other + 1) })
                }
            })

        let report = try #require(try await store.dispatch(Plain.SetOther(other: 1), awaiting: .cascade).cascade)

        #expect(report.causedCount == 100)
        #expect(store.state.other == 101)
        #expect(!report.refused.isEmpty)
        withExtendedLifetime(token) {}
    }

    @Test("a full mailbox still takes a follow-up")
    func room() throws {
        var mailbox = Mailbox(capacity: 1)
        let followUp = Transaction([.init(Plain.SetOther(other: 1))])
            .caused(by: Causation(cause: "a", root: "a", rootVersion: 1, depth: 1))

        let first = mailbox.enqueue(PendingTransaction(.of(Plain.SetOther(other: 1))) { _ in })
        let refused = mailbox.enqueue(PendingTransaction(.of(Plain.SetOther(other: 1))) { _ in })
        let taken = mailbox.enqueue(PendingTransaction(followUp) { _ in })

        #expect(first == nil && taken == nil)
        guard case .full(.mailbox)? = refused else { Issue.record("\(String(describing: refused))"); return }
    }

    @Test("a rejected follow-up is reported and changes nothing")
    func rejected() async throws {
        let events = Collection<StoreEvent>()
        let store = try Store(Plain(), report: { events.add($0) })
        let token = store.subscribe(\.other) { [weak store] other in
            if other == 1 { _ = try? store?.dispatch(Plain.SetNumber(number: 13)) }
        }

        let report = try #require(try await store.dispatch(Plain.SetOther(other: 1), awaiting: .cascade).cascade)

        #expect(report.refused.map(\.code) == ["unlucky"])
        #expect(report.causedCount == 0)
        #expect(events.values.count == 1)
        #expect(store.version == 1)
        withExtendedLifetime(token) {}
    }

    @Test("the batched follow-ups of a hundred subscribers are one commit and one notification")
    func conductor() async throws {
        let store = try Store(Sample())
        let notifications = Collection<Int>()
        let tokens = (0..<100).map { number in
            store.subscribe(\.count) { [weak store] count in
                if count.value == 1 { try? store?.batchFollowUp(Sample.Put(id: number, name: "n")) }
            }
        }
        let watcher = store.subscribe { notifications.add($0.items.table.count) }

        let report = try #require(try await store.dispatch(Sample.Add(amount: 1), awaiting: .cascade).cascade)

        #expect(store.version == 2)
        #expect(report.caused.map(\.types.count) == [100])
        #expect(notifications.values == [0, 0, 100])
        withExtendedLifetime((tokens, watcher)) {}
    }

    @Test("outside a notification a batched follow-up is dispatched at once, and several actions are one transaction")
    func batch() throws {
        let store = try Store(Sample())
        try store.batchFollowUp(Sample.Add(amount: 1))
        let commits = Collection<[String]>()
        let token = store.subscribe(
            changesOf: { $0.select(\.count.value) }, notify: { commits.add($0.commit?.types ?? []) })

        try store.dispatch(.batch([Sample.Add(amount: 1), Sample.Put(id: 1, name: "a"), Sample.Add(amount: 1)]))
        #expect(throws: DispatchError.self) {
            try store.dispatch(.batch([Sample.Add(amount: 1), Sample.Add(amount: -9)]))
        }

        #expect(store.version == 2)
        #expect(store.state.count.value == 3)
        #expect(commits.values == [[], ["count/add", "items/put", "count/add"]])
        withExtendedLifetime(token) {}
    }
}
