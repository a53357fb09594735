import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

/// A number and a reducer that adds to it; two such domains can differ in one reducer.
struct Tally: Domain {
    struct State: StateType {
        var value = 0
        var names: [String] = []
    }
    struct Add: Action { static let type = "tally/add"; var amount: Int }
    struct Name: Action { static let type = "tally/name"; var name: String }

    var add: @Sendable (_ value: Int, _ amount: Int) throws(Rejection) -> Int = { value, amount in value + amount }

    var reducer: some Reducer<State> {
        Field("value", \.value)
        Field("names", \.names)
        On(Add.self) { state, action throws(Rejection) in state.value = try add(state.value, action.amount) }
        On(Name.self) { state, action in state.names.append(action.name) }
    }
}

/// The domain of an earlier build: without names, and with an action that today's domain does not have.
struct EarlierTally: Domain {
    struct State: StateType { var value = 0 }
    struct Clear: Action { static let type = "tally/clear" }

    var reducer: some Reducer<State> {
        Field("value", \.value)
        On(Tally.Add.self) { state, action in state.value += action.amount }
        On(Clear.self) { state, _ in state.value = 0 }
    }
}

/// The commits that a domain makes of some transactions, from its initial state on.
func history<D: Domain>(_ domain: D, _ transactions: [Transaction]) throws -> (start: [UInt8], commits: [Commit]) {
    let model = try CompiledDomain(domain)
    let core = Core(
        domain: model, epoch: .random(), middleware: [], limits: StoreLimits(), state: .of(D.State()), version: 0,
        keys: [])
    let start = try model.bytes(of: .of(D.State()))
    let turn = core.turn(transactions, at: Timestamp(milliseconds: 5))
    return (start, turn.commits)
}

extension Commit {
    fileprivate func patched(_ patch: String) -> Commit { with(patch: Array(patch.utf8), changedPointers: []) }
}

@Suite("Following a history")
struct ReplayTests {
    @Test("replaying the recorded actions makes the same patches and the same bytes", arguments: 0..<30)
    func same(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        let core = try Core.sample()
        let start = Array(try core.json()!.utf8)
        var replay = try Replay(core.domain, from: start, version: 0)
        var patched = PatchedState(try JSONValue(parsing: start), version: 0)
        for _ in 0..<60 {
            let actions = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                Sample.anything(using: &generator)
            }
            let meta = Array(#"{"who":"me"}"#.utf8)
            let items = actions.enumerated().map { Transaction.Item($1, meta: $0 == 0 ? meta : nil) }
            let transaction = Transaction(items, form: actions.count > 1 ? .batch : .single)
            for commit in core.run([transaction]).commits {
                let replayed = try replay.take(commit)
                let told = try patched.take(commit)

                #expect(text(replayed.patch) == text(commit.patch), "seed \(seed)")
                #expect(replayed.changedPointers == commit.changedPointers, "seed \(seed)")
                #expect(Set(told.changedPointers) == Set(commit.changedPointers), "seed \(seed)")
            }
        }

        #expect(text(try replay.bytes()) == (try core.json()), "seed \(seed)")
        // A patched state can have another order of members; the domain encodes it in its own order.
        let told = try core.domain.bytes(of: core.domain.state(from: patched.bytes()))
        #expect(text(told) == (try core.json()), "seed \(seed)")
        #expect(replay.version == core.version)
    }

    @Test("a replayed commit keeps its time, its IDs and its recorded action")
    func kept() throws {
        let items: [Transaction.Item] = [.init(Tally.Add(amount: 1), id: "mine"), .init(Tally.Name(name: "x"))]
        let transaction = Transaction(items, form: .batch)
        let (start, commits) = try history(Tally(), [transaction])
        var replay = try Replay(try CompiledDomain(Tally()), from: start, version: 0)

        let replayed = try replay.take(commits[0])

        #expect(replayed.time == commits[0].time)
        #expect(replayed.id == commits[0].id)
        #expect(replayed.clientIDs == ["mine"])
        #expect(replayed.action == commits[0].action)
    }

    @Test("a replay gives the reducers the recorded subject")
    func subject() throws {
        let transaction = Transaction([.init(Notes.Write(text: "mine"))], subject: "anna")
        let (start, commits) = try history(Notes(), [transaction, .of(Notes.Write(text: "of the process"))])
        var replay = try Replay(try CompiledDomain(Notes()), from: start, version: 0)

        let patches = try commits.map { text(try replay.take($0).patch) }

        #expect(patches == commits.map { text($0.patch) })
        #expect(text(try replay.bytes()) == #"{"notes":{"lines":["anna: mine","?: of the process"]}}"#)
    }

    @Test("an action type that today's domain does not know is named with its version")
    func unknown() throws {
        let (start, commits) = try history(
            EarlierTally(), [.of(Tally.Add(amount: 1)), .of(Tally.Add(amount: 1), EarlierTally.Clear(), form: .batch)])
        var replay = try Replay(try CompiledDomain(Tally()), from: start, version: 0)
        _ = try replay.take(commits[0])

        let fault = #expect(throws: HistoryFault.self) { _ = try replay.take(commits[1]) }

        #expect(fault?.description == "version 2 (tally/clear): today's domain has no action of this type")
    }

    @Test("a replay runs a store's own action that the domain handles")
    func own() throws {
        struct Resuming: Domain {
            struct State: StateType, Codable { var starts = 0 }
            var reducer: some Reducer<State> { On(StoreResume.self) { state, _ in state.starts += 1 } }
        }
        let (start, commits) = try history(Resuming(), [.of(StoreResume())])
        var replay = try Replay(try CompiledDomain(Resuming()), from: start, version: 0)

        let replayed = try replay.take(commits[0])

        #expect(text(replayed.patch) == text(commits[0].patch))
        #expect(text(try replay.bytes()) == #"{"starts":1}"#)
    }

    @Test("an action whose type is a command today is named with its version")
    func command() throws {
        struct Commanding: Domain {
            struct State: StateType, Codable { var value = 0 }
            var reducer: some Reducer<State> { Command(EarlierTally.Clear.self) { _, _ in nil } }
        }
        let (start, commits) = try history(EarlierTally(), [.of(EarlierTally.Clear())])
        var replay = try Replay(try CompiledDomain(Commanding()), from: start, version: 0)

        let fault = #expect(throws: HistoryFault.self) { _ = try replay.take(commits[0]) }

        #expect(
            fault?.description
                == "version 1 (tally/clear): today this type is a command, and commands are not committed")
    }

    @Test("an action that today's reducers reject is named with its version and the rejection")
    func rejected() throws {
        let (start, commits) = try history(Tally(), [.of(Tally.Add(amount: 1))])
        let strict = Tally { _, _ throws(Rejection) in throw Rejection("tally.closed", "no more") }
        var replay = try Replay(try CompiledDomain(strict), from: start, version: 0)

        let fault = #expect(throws: HistoryFault.self) { _ = try replay.take(commits[0]) }

        #expect(
            fault?.description
                == "version 1 (tally/add): today's domain rejects the action with tally.closed: no more")
    }

    @Test("an action whose fields have changed is named with its version and the field")
    func otherForm() throws {
        let (start, _) = try history(Tally(), [])
        let commit = Commit(
            version: 1, time: Timestamp(milliseconds: 0), id: "x", types: ["tally/add"],
            action: Array(#"{"type":"tally/add","payload":{"sum":1}}"#.utf8), patch: Array("[]".utf8))
        var replay = try Replay(try CompiledDomain(Tally()), from: start, version: 0)

        let fault = #expect(throws: HistoryFault.self) { _ = try replay.take(commit) }

        #expect(
            fault?.description.hasPrefix(
                "version 1 (tally/add): today's action of this type has another form: /payload") == true)
    }

    @Test(
        "a replay applies the recorded patch of an upgrade, whether its state has the new part or not",
        arguments: [true, false])
    func upgrade(isThere: Bool) throws {
        let (recorded, _) = try history(EarlierTally(), [])
        let model = try CompiledDomain(Tally())
        let grown = try model.state(from: recorded)
        let upgrade = try #require(
            try model.upgrade(
                from: recorded, to: grown, version: 1, epoch: .random(), at: Timestamp(milliseconds: 0)))
        var replay = try Replay(model, from: isThere ? model.bytes(of: grown) : recorded, version: 0)
        var verification = try Verification(model, from: recorded, version: 0)

        let taken = try replay.take(upgrade)
        try verification.verify(upgrade)

        #expect(text(taken.patch) == "[]")
        #expect(text(try replay.bytes()) == #"{"value":0,"names":[]}"#)
    }

    @Test("a patch that does not fit the state is named with its version")
    func unfit() throws {
        let (start, commits) = try history(Tally(), [.of(Tally.Add(amount: 1))])
        var patched = PatchedState(try JSONValue(parsing: start), version: 0)
        let bad = commits[0].patched(#"[{"op":"remove","path":"/none"}]"#)

        let fault = #expect(throws: HistoryFault.self) { _ = try patched.take(bad) }

        #expect(
            fault?.description
                == "version 1 (tally/add): the patch does not fit the state: cannot remove at /none: there is no such place"
        )
    }
}

@Suite("Verifying a history")
struct VerificationTests {
    let transactions: [Transaction] = [
        .of(Tally.Name(name: "a")), .of(Tally.Add(amount: 0)), .of(Tally.Add(amount: 3)), .of(Tally.Add(amount: 4)),
    ]

    @Test("a domain agrees with its own history")
    func agrees() throws {
        let (start, commits) = try history(Tally(), transactions)
        var verification = try Verification(try CompiledDomain(Tally()), from: start, version: 0)

        for commit in commits { try verification.verify(commit) }

        #expect(verification.version == 4)
    }

    @Test("the first version that another reducer makes differently is named with its pointer")
    func differs() throws {
        let (start, commits) = try history(Tally(), transactions)
        let doubling = Tally { value, amount in value + 2 * amount }
        var verification = try Verification(try CompiledDomain(doubling), from: start, version: 0)
        // The second commit adds zero, which both reducers do alike.
        try verification.verify(commits[0])
        try verification.verify(commits[1])

        let fault = #expect(throws: HistoryFault.self) { try verification.verify(commits[2]) }

        #expect(fault?.version == 3)
        #expect(fault?.pointer == "/value")
        #expect(fault?.description == "version 3 (tally/add): today's reducers make another state at /value")
    }

    @Test("another patch that makes the same state is no difference")
    func samestate() throws {
        let (start, commits) = try history(Tally(), transactions)
        var verification = try Verification(try CompiledDomain(Tally()), from: start, version: 0)
        let whole = commits[0].patched(#"[{"op":"replace","path":"","value":{"names":["a"],"value":0.0}}]"#)

        try verification.verify(whole)
        try verification.verify(commits[1])

        #expect(verification.version == 2)
    }

    @Test(
        "a recorded patch that was tampered with is named with its pointer",
        arguments: [
            (#"[{"op":"add","path":"/names/0","value":"b"}]"#, "/names/0"), ("[]", "/names/0"),
            (#"[{"op":"add","path":"/names/0","value":"a"},{"op":"replace","path":"/value","value":1}]"#, "/value"),
        ])
    func tampered(patch: String, place: String) throws {
        let (start, commits) = try history(Tally(), transactions)
        var verification = try Verification(try CompiledDomain(Tally()), from: start, version: 0)

        let fault = #expect(throws: HistoryFault.self) { try verification.verify(commits[0].patched(patch)) }

        #expect(fault?.pointer?.description == place)
    }

    @Test("a snapshot that differs from the state of the commits is named with its pointer")
    func snapshot() throws {
        let (start, commits) = try history(Tally(), transactions)
        var verification = try Verification(try CompiledDomain(Tally()), from: start, version: 0)
        try verification.verify(commits[0])
        // An earlier build may have saved the state without this part, which has its initial value.
        try verification.compare(saved: Array(#"{"names":["a"]}"#.utf8), after: commits[0])

        let fault = #expect(throws: HistoryFault.self) {
            try verification.compare(saved: Array(#"{"value":7,"names":["a"]}"#.utf8), after: commits[0])
        }

        #expect(fault?.pointer == "/value")
    }
}
