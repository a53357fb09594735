import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Middleware")
struct MiddlewareTests {
    typealias State = Sample.State

    @Test("middleware runs in array order and may change an action")
    func order() throws {
        let double = Middleware<State> { action, _, next throws(Rejection) in
            if let add = action as? Sample.Add {
                try next(Sample.Add(amount: add.amount * 2))
            } else {
                try next(action)
            }
        }
        let increment = Middleware<State> { action, _, next throws(Rejection) in
            if let add = action as? Sample.Add {
                try next(Sample.Add(amount: add.amount + 1))
            } else {
                try next(action)
            }
        }
        let core = try Core.sample(middleware: [double, increment])

        let turn = core.run(Sample.Add(amount: 5))

        #expect(try core.json("/count/value") == "11")
        #expect(text(turn.commits[0].action) == #"{"type":"count/add","payload":{"amount":11}}"#)
    }

    @Test("a middleware sees the state before and after")
    func sees() throws {
        let check = Middleware<State> { action, context, next throws(Rejection) in
            let before = context.state.count.value
            try next(action)
            guard context.state.count.value < 10 else {
                throw Rejection("too-much", "\(before) became \(context.state.count.value)")
            }
        }
        let core = try Core.sample(middleware: [check])

        let turn = core.run(Sample.Add(amount: 9), Sample.Add(amount: 1))

        #expect(turn.outcomes[1].rejection?.detail == "9 became 10")
        #expect(core.version == 1)
    }

    @Test("an action that a middleware swallows commits nothing and is no failure")
    func swallow() throws {
        let core = try Core.sample(middleware: [Middleware { _, _, _ in }])

        let turn = core.run(Sample.Add(amount: 1))

        guard case .nothingCommitted = turn.outcomes[0] else { Issue.record("\(turn.outcomes[0])"); return }
        #expect(core.version == 0)
    }

    @Test("after a rejection that a middleware catches, the state has no change of the rejecting reducer")
    func recovers() throws {
        struct Halves: Domain {
            struct State: StateType, Codable { var first = 0; var second = 0 }
            struct Both: Action { static let type = "both"; var isWhole: Bool }
            var reducer: some Reducer<State> {
                On(Both.self) { state, action throws(Rejection) in
                    state.first += 1
                    guard action.isWhole else { throw Rejection("half", "only half") }
                    state.second += 1
                }
            }
        }
        let again = Middleware<Halves.State> { action, _, next throws(Rejection) in
            do throws(Rejection) { try next(action) } catch { try next(Halves.Both(isWhole: true)) }
        }
        let core = Core(
            domain: try CompiledDomain(Halves()), epoch: .random(), middleware: [again.step], limits: StoreLimits(),
            state: .of(Halves.State()),
            version: 0, keys: [])

        let turn = core.turn([.of(Halves.Both(isWhole: false))], at: Timestamp(milliseconds: 0))

        #expect(core.state.state(as: Halves.State.self).first == 1)
        #expect(core.state.state(as: Halves.State.self).second == 1)
        #expect(text(turn.commits.first?.action) == #"{"type":"both","payload":{"isWhole":true}}"#)
    }

    @Test("validation refuses an invalid action before any reducer")
    func validation() throws {
        let core = try Core.sample()

        let turn = core.run(Sample.Put(id: 1, name: ""))

        #expect(turn.outcomes[0].rejection?.pointer == "/name")
    }

    @Test("logging records each action, never its payload")
    func logging() throws {
        let log = Log()
        let core = try Core.sample(middleware: [
            Middleware(.logging { log.add("\($0.actionType) \($0.version) \($0.rejection?.code ?? "-")") })
        ])

        core.run(Sample.Add(amount: 1), Sample.Add(amount: -5))

        #expect(log.lines == ["count/add 1 -", "count/add 2 negative"])
    }
}

@Suite("Middleware of a running store", .timeLimit(.minutes(5)))
struct RunningMiddlewareTests {
    @Test("a follow-up of a middleware has its own turn, and its cause is the commit of the middleware's action")
    func dispatches() async throws {
        let commits = Collection<Commit>()
        let store = try Store(
            Sample(),
            middleware: [
                Middleware { action, context, next throws(Rejection) in
                    if action is Sample.Put { context.dispatch(Sample.Add(amount: 1)) }
                    try next(action)
                }
            ])
        let token = store.subscribe(
            changesOf: { $0.select { $0 } },
            notify: { change in
                if let commit = change.commit { commits.add(commit) }
            })

        let report = try #require(try await store.dispatch(Sample.Put(id: 1, name: "a"), awaiting: .cascade).cascade)

        #expect(report.caused.map(\.types) == [["count/add"]])
        #expect(commits.values.map(\.cause) == [nil, commits.values.first?.id])
        #expect(store.state.count.value == 1)
        withExtendedLifetime(token) {}
    }

    @Test("a follow-up of a middleware is dropped when the action is rejected, and in a dry run")
    func drops() throws {
        let core = try Core.sample(middleware: [
            Middleware { action, context, next throws(Rejection) in
                context.dispatch(Sample.Add(amount: 1))
                try next(action)
            }
        ])
        let dryRun = Transaction.of(Sample.Add(amount: 1), purpose: .dryRun)

        let turn = core.run([.of(Sample.Add(amount: -1)), dryRun, .of(Sample.Add(amount: 1))])

        #expect(turn.consequences.map(\.followUps.count) == [1])
        #expect(turn.uncommittedFollowUps.isEmpty)
    }

    @Test("a middleware may swallow an action and dispatch another in its place")
    func replaces() throws {
        let store = try Store(
            Sample(),
            middleware: [
                Middleware { action, context, next throws(Rejection) in
                    guard action is Sample.Put else { return try next(action) }
                    context.dispatch(Sample.Add(amount: 5))
                }
            ])

        let dispatched = try store.dispatch(Sample.Put(id: 1, name: "a"))
        store.drain()

        guard case .nothing = dispatched.result else { Issue.record("\(dispatched)"); return }
        #expect(store.state.count.value == 5)
        #expect(store.state.items.table.isEmpty)
    }

    @Test("middleware is changed while the store runs, from the next turn on")
    func changed() throws {
        let store = try Store(Sample())
        try store.dispatch(Sample.Add(amount: 1))

        store.middleware.insert(Middleware { _, _, _ throws(Rejection) in throw Rejection("closed", "no more") }, at: 0)
        let failure = #expect(throws: DispatchError.self) { try store.dispatch(Sample.Add(amount: 1)) }
        store.middleware.removeFirst()
        try store.dispatch(Sample.Add(amount: 1))

        #expect(failure?.code == "closed")
        #expect(store.state.count.value == 2)
    }

    @Test("after next, a middleware sees the state and the version that its action makes")
    func sees() throws {
        let log = Log()
        let store = try Store(
            Sample(),
            middleware: [
                Middleware { action, context, next throws(Rejection) in
                    log.add("before \(context.state.count.value)")
                    try next(action)
                    log.add("after \(context.state.count.value) at \(context.transaction.version)")
                }
            ])

        try store.dispatch(Sample.Add(amount: 3))

        #expect(log.lines == ["before 0", "after 3 at 1"])
        #expect(store.version == 1)
    }
}
