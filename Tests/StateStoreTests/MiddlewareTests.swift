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
        var core = try Core.sample(middleware: [double, increment])

        let turn = core.run(Sample.Add(amount: 5))

        #expect(try core.json("/count/value") == "11")
        #expect(text(turn.commits[0].action) == #"{"type":"count/add","payload":{"amount":11}}"#)
    }

    @Test("a middleware sees the state before and after")
    func sees() throws {
        let check = Middleware<State> { action, passage, next throws(Rejection) in
            let before = passage.state.count.value
            try next(action)
            guard passage.state.count.value < 10 else {
                throw Rejection("too-much", "\(before) became \(passage.state.count.value)")
            }
        }
        var core = try Core.sample(middleware: [check])

        let turn = core.run(Sample.Add(amount: 9), Sample.Add(amount: 1))

        #expect(turn.outcomes[1].rejection?.detail == "9 became 10")
        #expect(core.version == 1)
    }

    @Test("an action that a middleware holds back is refused and leaves no trace")
    func swallow() throws {
        var core = try Core.sample(middleware: [Middleware { _, _, _ in }])

        let turn = core.run(Sample.Add(amount: 1))

        #expect(turn.outcomes[0].rejection?.code == "action-held-back")
        #expect(core.version == 0)
    }

    @Test("a middleware that goes on after a rejection finds nothing of the reducer that had begun")
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
        var core = Core(
            model: try Model(Halves()), epoch: .random(), middleware: [again], limits: StoreLimits(), state: .init(),
            version: 0, keys: [])

        let turn = core.turn([.of(Halves.Both(isWhole: false))], at: Timestamp(milliseconds: 0))

        #expect(turn.state.first == 1)
        #expect(turn.state.second == 1)
        #expect(text(turn.commits.first?.action) == #"{"type":"both","payload":{"isWhole":true}}"#)
    }

    @Test("validation refuses an invalid action before any reducer")
    func validation() throws {
        var core = try Core.sample()

        let turn = core.run(Sample.Put(id: 1, name: ""))

        #expect(turn.outcomes[0].rejection?.pointer == "/name")
    }

    @Test("logging tells of each action, never of its payload")
    func logging() throws {
        let log = Log()
        var core = try Core.sample(middleware: [
            .logging { log.add("\($0.actionType) \($0.version) \($0.rejection?.code ?? "-")") }
        ])

        core.run(Sample.Add(amount: 1), Sample.Add(amount: -5))

        #expect(log.lines == ["count/add 1 -", "count/add 2 negative"])
    }
}
