import Testing

@testable import StateStore

/// Lines of text, each behind the subject that has written it.
struct Notes: Domain {
    struct State: StateType { var notes = Lines() }
    struct Lines: StateType, Codable, Equatable { var lines: [String] = [] }
    struct Write: Action { static let type = "notes/write"; var text: String }
    struct Clear: Action { static let type = "notes/clear" }

    var reducer: some Reducer<State> {
        Slice("notes", \.notes) {
            On(Write.self) { state, action, context in
                state.lines.append("\(context.subject ?? "?"): \(action.text)")
            }
            On(Clear.self) { state, _, context throws(Rejection) in
                guard context.subject == "anna" else { throw Rejection("notes.owner", "only anna clears the notes") }
                state.lines = []
            }
        }
    }
}

extension Core {
    @discardableResult
    fileprivate func act(_ transactions: [Transaction]) -> Turn {
        turn(transactions, at: Timestamp(milliseconds: 0))
    }
}

@Suite("What a handler knows of an action")
struct ReducerContextTests {
    private func core(_ middleware: [Middleware<Notes.State>] = []) throws -> Core {
        Core(
            domain: try CompiledDomain(Notes()), epoch: .random(), middleware: middleware.map(\.step),
            limits: StoreLimits(),
            state: .of(Notes.State()), version: 0, keys: [])
    }

    private func transaction(_ actions: [any Action], by subject: String?) -> Transaction {
        Transaction(actions.map { .init($0) }, form: .batch, subject: subject)
    }

    @Test("a handler reads the subject of its transaction, also in a batch and behind middleware")
    func subject() throws {
        let shout = Middleware<Notes.State> { action, _, next throws(Rejection) in
            try next((action as? Notes.Write).map { Notes.Write(text: $0.text + "!") } ?? action)
        }
        let core = try core([shout])

        core.act([
            transaction([Notes.Write(text: "a"), Notes.Write(text: "b")], by: "anna"),
            transaction([Notes.Write(text: "c")], by: "bert"),
            transaction([Notes.Write(text: "d")], by: nil),
        ])

        #expect(core.state.state(as: Notes.State.self).notes.lines == ["anna: a!", "anna: b!", "bert: c!", "?: d!"])
    }

    @Test("a handler rejects by the subject", arguments: ["bert", nil])
    func rejects(subject: String?) throws {
        let core = try core()
        core.act([transaction([Notes.Write(text: "a")], by: "anna")])

        let refused = core.act([transaction([Notes.Clear()], by: subject)])
        let taken = core.act([transaction([Notes.Clear()], by: "anna")])

        #expect(refused.outcomes[0].rejection?.code == "notes.owner")
        #expect(taken.commits.count == 1)
    }

    @Test("a dry run has the subject of its client")
    func dryRun() throws {
        let core = try core()
        let dryRun = Transaction([.init(Notes.Write(text: "a"))], form: .batch, purpose: .dryRun, subject: "anna")

        let turn = core.act([dryRun])

        guard case .wouldCommit(_, let patch) = turn.outcomes[0] else { Issue.record("\(turn.outcomes)"); return }
        #expect(text(patch)?.contains("anna: a") == true)
    }

    @Test("a follow-up has the subject of the commit that caused it", .timeLimit(.minutes(5)))
    func followUp() async throws {
        let echo = Middleware<Notes.State> { action, context, next throws(Rejection) in
            try next(action)
            if (action as? Notes.Write)?.text == "a" { context.dispatch(Notes.Write(text: "echo")) }
        }
        let store = try Store(Notes(), middleware: [echo])

        _ = store.submitNow(Transaction([.init(Notes.Write(text: "a"))], subject: "anna"))

        for await lines in store.values({ $0.select(\.notes.lines) }) where lines.count == 2 {
            #expect(lines == ["anna: a", "anna: echo"])
            break
        }
    }
}
