import Testing

@testable import StateStore
@testable import StateJSON

func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

/// A counter and a table: enough for most questions.
struct Sample: Domain {
    struct State: StateType {
        var count = Count()
        var items = Items()
    }
    struct Count: StateType, Codable, Equatable { var value = 0 }
    struct Items: StateType {
        var table = EntityTable<Int, Item>()
        var marked: [Int] = []
    }
    struct Item: Codable, Equatable { var name: String; var size = 0.0 }

    struct Add: Action { static let type = "count/add"; var amount: Int }
    struct Put: ValidatedAction {
        static let type = "items/put"
        var id: Int
        var name: String
        func validate() throws(Rejection) {
            guard !name.isEmpty else { throw Rejection("name", "a name is not empty", kind: .invalid, pointer: "/name") }
        }
    }
    struct Remove: Action { static let type = "items/remove"; var id: Int }
    struct Move: Action { static let type = "items/move"; var id: Int; var position: Int }
    struct Break: Action { static let type = "items/break"; var id: Int }
    struct Both: Action { static let type = "both"; var id: Int }

    var reducer: some Reducer<State> {
        Slice("count", \.count) {
            On(Add.self) { state, action throws(Rejection) in
                guard state.value + action.amount >= 0 else { throw Rejection("negative", "would be negative") }
                state.value += action.amount
            }
            On(Both.self) { state, _ in state.value += 1 }
        }
        Slice("items", \.items) {
            Entities("entities", \.table)
            Field("marked", \.marked)
            On(Put.self) { state, action in state.table[action.id] = Item(name: action.name) }
            On(Remove.self) { state, action in state.table[action.id] = nil }
            On(Move.self) { state, action in state.table.move(action.id, to: action.position) }
            On(Break.self) { state, action in state.table[action.id] = Item(name: "broken", size: .nan) }
            On(Both.self) { state, action in state.marked.append(action.id) }
            View("names", reads: ["/entities", "/ids"]) { state in state.table.map(\.entity.name) }
        }
    }
}

extension Core where State == Sample.State {
    static func sample(
        middleware: [Middleware<State>] = [.validation], limits: StoreLimits = StoreLimits()
    ) throws -> Core {
        Core(
            model: try Model(Sample()), epoch: Epoch("aaaaaaaaaaaaaaaa")!, middleware: middleware, limits: limits,
            state: State(), version: 0, keys: [])
    }

    /// Runs a turn and makes it the present.
    @discardableResult
    mutating func run(_ submissions: [Submission], at milliseconds: Int64 = 0) -> Turn {
        let turn = turn(submissions, at: Timestamp(milliseconds: milliseconds))
        adopt(turn, at: Timestamp(milliseconds: milliseconds))
        return turn
    }

    @discardableResult
    mutating func run(_ actions: any Action...) -> Turn { run(actions.map { .of($0) }) }

    func json(_ pointer: JSONPointer = .root) throws -> String? {
        text(try model.select(.pointer(pointer), in: state))
    }
}

extension Submission {
    static func of(_ actions: any Action..., form: Form = .single, key: String? = nil, body: String = "") -> Submission {
        var submission = Submission(actions.map { Item($0) }, form: form)
        submission.idempotency = key.map { ($0, body) }
        return submission
    }
}

extension Outcome {
    var receipt: Receipt? { if case .committed(let receipt) = self { receipt } else { nil } }
    var rejection: Rejection? { if case .rejected(let rejection, _) = self { rejection } else { nil } }
}

@Suite("The turn")
struct TurnTests {
    @Test("each action is one version, recorded with the patch that it made")
    func versions() throws {
        var core = try Core.sample()

        let turn = core.run(Sample.Add(amount: 2), Sample.Put(id: 7, name: "a"), Sample.Add(amount: 0))

        #expect(turn.commits.map(\.version) == [1, 2, 3])
        #expect(turn.commits.map(\.isChange) == [true, true, false])
        #expect(text(turn.commits[0].patch) == #"[{"op":"replace","path":"/count/value","value":2}]"#)
        #expect(
            text(turn.commits[1].patch)
                == #"[{"op":"add","path":"/items/entities/7","value":{"name":"a","size":0}},{"op":"add","path":"/items/ids/0","value":7}]"#)
        #expect(text(turn.commits[1].action) == #"{"type":"items/put","payload":{"id":7,"name":"a"}}"#)
        #expect(turn.commits[2].id == "aaaaaaaaaaaaaaaa.3")
        #expect(try core.json() == #"{"count":{"value":2},"items":{"entities":{"7":{"name":"a","size":0}},"ids":[7],"marked":[]}}"#)
    }

    @Test("a rejected action commits nothing and takes no version")
    func rejection() throws {
        var core = try Core.sample()

        let turn = core.run(Sample.Add(amount: -1), Sample.Add(amount: 1))

        #expect(turn.outcomes[0].rejection?.code == "negative")
        #expect(turn.outcomes[1].receipt?.version == 1)
    }

    @Test("a batch is all or nothing, and one version")
    func batch() throws {
        var core = try Core.sample()

        let bad = core.run([.of(Sample.Add(amount: 5), Sample.Add(amount: -9), form: .batch)])
        let good = core.run([.of(Sample.Add(amount: 5), Sample.Put(id: 1, name: "x"), form: .batch)])

        guard case .rejected(_, index: 1) = bad.outcomes[0] else { Issue.record("\(bad.outcomes)"); return }
        #expect(bad.commits.isEmpty)
        #expect(good.commits.map(\.version) == [1])
        #expect(text(good.commits[0].action)?.hasPrefix(#"[{"type":"count/add""#) == true)
        #expect(try core.json("/count/value") == "5")
    }

    @Test("an action that several slices handle changes all of them in one commit")
    func shared() throws {
        var core = try Core.sample()

        let turn = core.run(Sample.Both(id: 3))

        #expect(turn.commits[0].touched == ["/count/value", "/items/marked"])
    }

    @Test("a state that JSON cannot say is not committed")
    func unencodable() throws {
        var core = try Core.sample()

        let turn = core.run(Sample.Break(id: 1), Sample.Add(amount: 1))

        guard case .failed = turn.outcomes[0] else { Issue.record("\(turn.outcomes[0])"); return }
        #expect(try core.json("/items/entities") == "{}")
        #expect(core.version == 1)
    }

    @Test("a dry run tells the patch and keeps nothing")
    func dryRun() throws {
        var core = try Core.sample()
        var submission = Submission.of(Sample.Add(amount: 4), key: "k")
        submission.purpose = .dryRun

        let turn = core.run([submission])

        guard case .wouldCommit(isChange: true, let patch) = turn.outcomes[0] else { Issue.record("no"); return }
        #expect(text(patch) == #"[{"op":"replace","path":"/count/value","value":4}]"#)
        #expect(core.version == 0)
        #expect(core.ledger.count == 0)
    }

    @Test("an expectation that does not hold names the place, the expected and the actual")
    func expectation() throws {
        var core = try Core.sample()
        core.run(Sample.Add(amount: 4))
        var submission = Submission.of(Sample.Add(amount: 1))
        submission.expectations = [.init("/count/value", .double(4.0)), .init("/count/none", .null)]

        let turn = core.run([submission])

        guard case .preconditionFailed(let failure) = turn.outcomes[0] else { Issue.record("no"); return }
        #expect(failure.pointer == "/count/none")
        #expect(failure.actual == nil)
        #expect(core.version == 1)
    }

    @Test("a tag guard watches one place only")
    func tagGuard() throws {
        var core = try Core.sample()
        let tag = Encoded(Array(#"{"value":0}"#.utf8)).tag
        core.run(Sample.Put(id: 1, name: "elsewhere"))
        var submission = Submission.of(Sample.Add(amount: 1))
        submission.tagGuard = .init("/count", .tags([tag]))

        let turn = core.run([submission, submission])

        #expect(turn.outcomes[0].receipt?.version == 2)
        guard case .preconditionFailed = turn.outcomes[1] else { Issue.record("no"); return }
    }
}

@Suite("Idempotency keys")
struct IdempotencyTests {
    @Test("the same key in one turn and in later ones is one commit")
    func once() throws {
        var core = try Core.sample()

        let first = core.run(Array(repeating: .of(Sample.Add(amount: 1), key: "k"), count: 20))
        let later = core.run([.of(Sample.Add(amount: 1), key: "k")])

        #expect(first.commits.count == 1)
        #expect(first.outcomes.map { $0.receipt?.isReplay } == [false] + Array(repeating: true, count: 19))
        #expect(later.outcomes[0].receipt?.version == 1)
        #expect(try core.json("/count/value") == "1")
    }

    @Test("the same key with another body is an error")
    func reused() throws {
        var core = try Core.sample()

        let turn = core.run([.of(Sample.Add(amount: 1), key: "k", body: "1"), .of(Sample.Add(amount: 2), key: "k", body: "2")])

        guard case .keyReused(key: "k") = turn.outcomes[1] else { Issue.record("no"); return }
    }

    @Test("a rejected action does not use its key up")
    func rejected() throws {
        var core = try Core.sample()

        core.run([.of(Sample.Add(amount: -1), key: "k")])
        let turn = core.run([.of(Sample.Add(amount: 1), key: "k")])

        #expect(turn.outcomes[0].receipt?.isReplay == false)
    }

    @Test("a key is kept for its time and not longer", arguments: [(999, true), (1000, false)])
    func expiry(later: Int64, isReplay: Bool) throws {
        var core = try Core.sample(limits: StoreLimits(idempotencyLifetime: .seconds(1)))

        core.run([.of(Sample.Add(amount: 1), key: "k")], at: 0)
        let turn = core.run([.of(Sample.Add(amount: 1), key: "k")], at: later)

        #expect(turn.outcomes[0].receipt?.isReplay == isReplay)
    }

    @Test("over the limit of keys a new key is refused and a known one still answered")
    func full() throws {
        var core = try Core.sample(limits: StoreLimits(idempotencyKeysMax: 1))
        core.run([.of(Sample.Add(amount: 1), key: "a")])

        let turn = core.run([.of(Sample.Add(amount: 1), key: "b"), .of(Sample.Add(amount: 1), key: "a")])

        guard case .full(.idempotencyKeys) = turn.outcomes[0] else { Issue.record("no"); return }
        #expect(turn.outcomes[1].receipt?.isReplay == true)
    }
}

@Suite("Middleware")
struct MiddlewareTests {
    typealias State = Sample.State

    @Test("middleware runs in array order and may change an action")
    func order() throws {
        let double = Middleware<State> { action, _, next throws(Rejection) in
            if let add = action as? Sample.Add { try next(Sample.Add(amount: add.amount * 2)) } else { try next(action) }
        }
        let increment = Middleware<State> { action, _, next throws(Rejection) in
            if let add = action as? Sample.Add { try next(Sample.Add(amount: add.amount + 1)) } else { try next(action) }
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

    @Test("validation refuses an invalid action before any reducer")
    func validation() throws {
        var core = try Core.sample()

        let turn = core.run(Sample.Put(id: 1, name: ""))

        #expect(turn.outcomes[0].rejection?.pointer == "/name")
    }

    @Test("logging tells of each action, never of its payload")
    func logging() throws {
        let log = Log()
        var core = try Core.sample(middleware: [.logging { log.add("\($0.actionType) \($0.version) \($0.rejection?.code ?? "-")") }])

        core.run(Sample.Add(amount: 1), Sample.Add(amount: -5))

        #expect(log.lines == ["count/add 1 -", "count/add 2 negative"])
    }
}

import Synchronization

final class Log: Sendable {
    private let stored = Mutex<[String]>([])
    var lines: [String] { stored.withLock { $0 } }
    func add(_ line: String) { stored.withLock { $0.append(line) } }
}

@Suite("Declarations")
struct DeclarationTests {
    @Test("a forgotten part of the state is named")
    func forgotten() {
        struct Forgetful: Domain {
            struct State: StateType { var flag = false; var counter = 0; var names: [String] = [] }
            var reducer: some Reducer<State> { Field("flag", \.flag); Field("names", \.names) }
        }

        let fault = #expect(throws: DeclarationFault.self) { try Model(Forgetful()) }

        #expect(fault?.description == "State.counter is not declared: add a Slice, Entities or Field for it")
    }

    @Test("a state that is neither declared nor Codable is named")
    func bare() {
        struct Bare: Domain {
            struct State: StateType { var table = 0 }
            struct Touch: Action { static let type = "touch" }
            var reducer: some Reducer<State> { On(Touch.self) { _, _ in } }
        }

        let fault = #expect(throws: DeclarationFault.self) { try Model(Bare()) }

        #expect(fault?.description.contains("State is not Codable") == true)
    }

    @Test("one action type under two Swift types is named")
    func twice() {
        struct Twice: Domain {
            struct State: StateType, Codable { var value = 0 }
            struct One: Action { static let type = "x" }
            struct Two: Action { static let type = "x" }
            var reducer: some Reducer<State> { On(One.self) { _, _ in }; On(Two.self) { _, _ in } }
        }

        let fault = #expect(throws: DeclarationFault.self) { try Model(Twice()) }

        #expect(fault?.description == #"the action type "x" is both One and Two"#)
    }
}

@Suite("Entity tables")
struct EntityTableTests {
    typealias Table = EntityTable<Int, Sample.Item>

    @Test("a table behaves as an array of pairs does, and the patch between two tables is exact", arguments: 0..<150)
    func model(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var table = Table()
        var reference: [(Int, String)] = []
        let places: (EntitiesPlace<Int, Sample.Item>, OrderPlace<Int, Sample.Item>) = (.init(), .init())
        for step in 0..<60 {
            let before = table
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let id = Int.random(in: 0..<30, using: &generator)
                let known = reference.firstIndex { $0.0 == id }
                switch Int.random(in: 0..<5, using: &generator) {
                case 0, 1:
                    table[id] = .init(name: "n\(step)")
                    if let known { reference[known].1 = "n\(step)" } else { reference.append((id, "n\(step)")) }
                case 2:
                    table[id] = nil
                    if let known { reference.remove(at: known) }
                case 3:
                    let position = Int.random(in: 0...max(0, reference.count - 1), using: &generator)
                    #expect(table.move(id, to: position) == (known != nil))
                    if let known { reference.insert(reference.remove(at: known), at: position) }
                default:
                    let position = Int.random(in: 0...reference.count, using: &generator)
                    guard known == nil else { continue }
                    table.insert(.init(name: "i\(step)"), id: id, at: position)
                    reference.insert((id, "i\(step)"), at: position)
                }
            }
            #expect(table.ids == reference.map(\.0), "seed \(seed)")
            #expect(table.map(\.entity.name) == reference.map(\.1), "seed \(seed)")

            var (entities, order) = (JSONPatch(), JSONPatch())
            try places.0.compare(before, table, scope: [], into: &entities)
            try places.1.compare(before, table, scope: [], into: &order)
            var (oldEntities, oldOrder) = (try JSONValue(parsing: places.0.text(before)), try JSONValue(parsing: places.1.text(before)))
            try oldEntities.apply(patch: JSONValue(parsing: entities.text))
            try oldOrder.apply(patch: JSONValue(parsing: order.text))
            #expect(oldEntities == (try JSONValue(parsing: places.0.text(table))), "seed \(seed)")
            #expect(oldOrder == (try JSONValue(parsing: places.1.text(table))), "seed \(seed)")
        }
    }

    @Test("a hundred insertions at one place find room")
    func room() {
        var table = Table()
        table[1] = .init(name: "first")
        table[2] = .init(name: "last")
        for id in 3..<300 { table.insert(.init(name: ""), id: id, at: 1) }

        #expect(table.ids == [1] + (3..<300).reversed() + [2])
    }

    @Test("a table of its own encodes and decodes, order included")
    func codable() throws {
        var table = Table()
        for id in [5, 3, 9] { table[id] = .init(name: "\(id)") }
        table.move(9, to: 0)

        let decoded = try JSON.decode(Table.self, from: JSON.encode(table))

        #expect(decoded == table)
        #expect(decoded.ids == [9, 5, 3])
    }

    @Test("a balanced map stays balanced", arguments: [0, 1, 2])
    func balance(pattern: Int) {
        var map = PersistentMap<Int, Int>()
        for key in 0..<5000 { map.set(pattern == 0 ? key : pattern == 1 ? -key : key * 7919 % 5003, key) }
        for key in 0..<2500 { map.remove(pattern == 1 ? -key : key) }
        func depth(_ node: PersistentMap<Int, Int>.Node?) -> Int {
            node.map { max(depth($0.left), depth($0.right)) + 1 } ?? 0
        }

        #expect(depth(map.root) < 30)
    }
}

@Suite("Recovery")
struct RecoveryTests {
    @Test("the initial state and all patches make the state", arguments: 0..<30)
    func replay(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var core = try Core.sample()
        var value = try JSONValue(parsing: Array(core.json()!.utf8))
        for _ in 0..<80 {
            let id = Int.random(in: 0..<12, using: &generator)
            let action: any Action =
                [
                    Sample.Add(amount: id - 5), Sample.Put(id: id, name: "n\(id)"), Sample.Remove(id: id),
                    Sample.Move(id: id, position: id / 2), Sample.Both(id: id),
                ].randomElement(using: &generator)!
            for commit in core.run(action).commits { try value.apply(patch: JSONValue(parsing: commit.patch)) }
        }

        #expect(value == (try JSONValue(parsing: Array(core.json()!.utf8))), "seed \(seed)")
        let state = try core.model.state(from: value.text)
        #expect(text(try core.model.select(.pointer(.root), in: state)) == (try core.json()))
    }

    @Test("a member that the domain does not declare is refused with its place")
    func unknownMember() throws {
        let model = try Model(Sample())

        #expect(throws: JSONFault.self) { try model.state(from: Array(#"{"films":{}}"#.utf8)) }
    }
}

/// A small seeded generator, so that a failing case can be run again.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
