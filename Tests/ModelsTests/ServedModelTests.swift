import StateJSON
import TestSupport
import Testing

@testable import Models
@testable import StateStore

/// Whether the machine has the engine; CI installs it.
let hasEngine = (try? Model(Array(text.utf8), name: "model.js")) != nil

private let text = """
    import { createSlice } from '@reduxjs/toolkit';
    import { view, reject } from 'storekeeper';
    const list = createSlice({
      name: 'list', initialState: { items: {}, order: [], sum: 0 },
      reducers: {
        put(state, { payload: { key, value } }) { state.items[key] = value; state.sum += value; state.order.unshift(key); },
        drop(state, { payload: { key } }) {
          if (!(key in state.items)) reject('list.unknown', 'there is no such item', '/key');
          state.sum -= state.items[key]; delete state.items[key]; state.order = state.order.filter((each) => each !== key);
        },
        fail(state) { state.sum = 1e9; throw new Error('always'); },
      },
    });
    const when = createSlice({
      name: 'when', initialState: { last: null }, reducers: { note(state, { meta }) { state.last = meta; } },
    });
    view('first', (state) => state.list.order[0] ?? null);
    view('from', (state, { key, most = 2 }) => state.list.order.filter((each) => each >= key).slice(0, most),
      { reads: ['list'], parameters: { type: 'object', required: ['key'],
        properties: { key: { type: 'string' }, most: { type: 'integer' } }, additionalProperties: false } });
    view('mine', (state, parameters, { subject }) => [subject ?? null, state.list.items[subject] ?? null]);
    view('blind', (state, ...rest) => rest);
    """

private func model() throws -> ServedModel {
    try ServedModel(
        .init(
            read: { Array(text.utf8) }, name: "model.js", time: .seconds(1), bytesMax: 1 << 30,
            check: { _, _ in { _, _ in [] } }, report: { _ in }))
}

extension CompiledDomain {
    fileprivate func declaration(of type: String) throws -> DeclaredAction.Declaration {
        try #require(catalogue.whole.entries[type]?.actionType.declaration)
    }

    fileprivate func reduce(_ tree: JSONTree, _ action: DeclaredAction) throws -> JSONTree {
        var state = StateBox.of(tree)
        try #require(entry(of: action)).reduce(&state, action, ReducerContext(subject: nil))
        return try #require(state.document)
    }
}

@Suite("A model that is served", .enabled(if: hasEngine))
struct ServedModelTests {
    @Test("a view gets the parameters of its schema, and the subject where its function takes it")
    func arguments() throws {
        let domain = try CompiledDomain(model())
        let put = try domain.declaration(of: "list/put")
        var tree = try #require(domain.initial.document)
        for key in ["a", "b", "c"] {
            let action = try put.action(Array("{\"key\":\"\(key)\",\"value\":1}".utf8), at: .root)
            tree = try domain.reduce(tree, action)
        }
        func look(_ name: String, _ arguments: ViewArguments) throws -> String {
            let view = try #require(domain.catalogue.views[name])
            return String(decoding: try view.evaluate(.of(tree), arguments).write(), as: UTF8.self)
        }

        #expect(try look("from", ViewArguments(parameters: ["key": "b"])) == #"["c","b"]"#)
        #expect(try look("from", ViewArguments(parameters: ["key": "a", "most": 1])) == #"["c"]"#)
        #expect(try look("mine", ViewArguments(subject: "b")) == #"["b",1]"#)
        #expect(try look("mine", .none) == "[null,null]")
        #expect(try look("mine", ViewArguments(subject: #"x","subject":"b"#)) == #"["x\",\"subject\":\"b",null]"#)
        #expect(try look("blind", ViewArguments(parameters: ["key": "b"], subject: "b")) == "[]")
        let views = domain.catalogue.views.mapValues { ($0.parameters != nil, $0.takesSubject) }
        #expect(views["from"]! == (true, false) && views["mine"]! == (false, true) && views["blind"]! == (false, false))
    }

    @Test(
        "a file is refused whose view has parameters that no address can hold",
        arguments: [
            ("(state, { wait }) => 1", "{ wait: { type: 'integer' } }", "\"wait\""),
            ("(state, { tags }) => 1", "{ tags: { type: 'array' } }", "\"tags\""),
        ])
    func reserved(function: String, properties: String, named: String) throws {
        let file = text + "view('odd', \(function), { parameters: { type: 'object', properties: \(properties) } });"
        let serving = Model.Serving(
            read: { Array(file.utf8) }, name: "model.js", time: .seconds(1), bytesMax: 1 << 30,
            check: { _, _ in { _, _ in [] } }, report: { _ in })

        let fault = #expect(throws: Model.Fault.self) { try ServedModel(serving) }
        #expect(fault?.message.contains(named) == true)
        #expect(throws: Model.Fault.self) {
            try Model(Array(file.utf8), name: "model.js").checks { _, _ in { _, _ in [] } }
        }
    }

    @Test("a function of parameters without a schema is refused, with the line")
    func withoutSchema() {
        let fault = #expect(throws: Model.Fault.self) {
            try Model(Array((text + "\nview('odd', (state, { a }) => a);").utf8), name: "model.js")
        }
        #expect(fault?.message.contains("schema") == true && fault?.line != nil)
    }

    @Test("whatever state is reduced or looked at, the engine has exactly that one", arguments: 1...4)
    func copies(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let domain = try CompiledDomain(model())
        let first = try #require(domain.catalogue.views["first"])
        var states = [try #require(domain.initial.document)]
        for number in 0..<600 {
            // Mostly the newest, as the turns of a store; now and then any other, as a fork or a dry run.
            let isNewest = Int.random(in: 0..<4, using: &generator) > 0
            let before =
                isNewest ? states[states.count - 1] : states[Int.random(in: 0..<states.count, using: &generator)]
            let key = "k\(Int.random(in: 0..<8, using: &generator))"
            let (type, payload): (String, JSONValue) =
                switch Int.random(in: 0..<6, using: &generator) {
                case 0: ("list/drop", ["key": .string(key)])
                case 1: ("list/fail", [:])
                default: ("list/put", ["key": .string(key), "value": .integer(Int64(number))])
                }
            let action = try domain.declaration(of: type).action(payload.text, at: .root)
            let wanted = Self.reduced(before.value, type, payload)

            let after = try? domain.reduce(before, action)

            #expect(after?.value == wanted, "seed \(seed), \(number): \(type)")
            #expect(
                String(decoding: try first.evaluate(.of(after ?? before), .none).write(), as: UTF8.self)
                    == String(decoding: ((wanted ?? before.value)[pointer: "/list/order/0"] ?? nil).text, as: UTF8.self)
            )
            if let after { states.append(after) }
        }
        #expect(states.count > 200)
    }

    @Test("a state has at most 400 levels, however few each action adds")
    func levels() throws {
        let file =
            text + """

                createSlice({
                  name: 'thread', initialState: {},
                  reducers: {
                    reply(state, { payload: { levels } }) {
                      let last = state;
                      while (last.reply) last = last.reply;
                      for (let level = 0; level < levels; level += 1) { last.reply = {}; last = last.reply; }
                    },
                  },
                });
                """
        let model = try ServedModel(
            .init(
                read: { Array(file.utf8) }, name: "model.js", time: .seconds(1), bytesMax: 1 << 30,
                check: { _, _ in { _, _ in [] } }, report: { _ in }))
        let domain = try CompiledDomain(model)
        let reply = try domain.declaration(of: "thread/reply")
        func replying(_ levels: Int, to tree: JSONTree) throws -> JSONTree {
            let action = try reply.action(Array("{\"levels\":\(levels)}".utf8), at: .root)
            return try domain.reduce(tree, action)
        }

        // The state and its slice are two levels.
        let tree = try replying(300, to: #require(domain.initial.document))
        let rejection = #expect(throws: Rejection.self) { try replying(99, to: tree) }
        #expect(rejection?.code == "reducer-fault" && rejection?.detail.contains("400 levels") == true)
        #expect(try replying(98, to: tree).depth == 400)
    }

    @Test("a reducer sees the time, the ID and the subject of the record, and so does a replay")
    func meta() throws {
        let store = try Store(model())
        let action = StandardAction(type: "when/note")

        try store.dispatch(action)

        let last = try #require(store.state.value[pointer: "/when/last"])
        guard case .object(let members) = last else { throw JSONFault(.mismatch, at: "/when/last", "no object") }
        #expect(members.members.map(\.key).sorted() == ["id", "time"])
    }

    /// What the reducers do, in Swift.
    private static func reduced(_ before: JSONValue, _ type: String, _ payload: JSONValue) -> JSONValue? {
        guard case .string(let key)? = payload[pointer: "/key"] else { return nil }
        var state = before
        let place = JSONPointer(["list", "items", key])
        guard case .integer(let sum)? = state[pointer: "/list/sum"],
            case .array(let order)? = state[pointer: "/list/order"]
        else { return nil }
        var (newSum, newOrder) = (sum, order)
        if type == "list/put" {
            guard case .integer(let value)? = payload[pointer: "/value"] else { return nil }
            _ = state.apply("add", at: place.tokens[...], .integer(value))
            newSum += value
            newOrder.insert(.string(key), at: 0)
        } else {
            guard case .integer(let value)? = state[pointer: place] else { return nil }
            _ = state.apply("remove", at: place.tokens[...], nil)
            newSum -= value
            newOrder.removeAll { $0 == .string(key) }
        }
        _ = state.apply("replace", at: ["list", "sum"], .integer(newSum))
        _ = state.apply("replace", at: ["list", "order"], .array(newOrder))
        return state
    }
}
