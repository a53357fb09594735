import StateJSON
import Testing

@testable import Models
@testable import StateStore

private let text = """
    const deep = (levels) => { let at = {}; for (let level = 0; level < levels; level += 1) at = { not: at }; return at };
    const it = createSlice({ name: 'it', initialState: { n: 0, text: '' }, reducers: {
      add: (state) => { state.n += 1 },
      fail: (state) => { state.n = 9; throw new Error('always') },
      loop: (state) => { state.n = 9; for (;;); },
      recurse: (state) => { state.n = 9; const deeper = () => deeper() + 1; deeper() },
      write: (state, { payload }) => { state.text = payload.sign.repeat(payload.count) },
    } });
    view('text', (state) => state.it.text + state.it.text);
    """

private func model(_ source: String = text, answerBytesMax: Int = 1 << 20) throws -> Model {
    try Model(Array(source.utf8), name: "model.js", time: .milliseconds(20), answerBytesMax: answerBytesMax)
}

extension Model {
    fileprivate func reduce(_ type: String, _ payload: JSONValue = [:]) throws(Fault) -> Outcome {
        try reduce(type, payload.text, meta: Model.sampleMeta.text)
    }
}

@Suite("What a model says", .enabled(if: hasEngine))
struct HostileModelTests {
    @Test("a description that is nested too deeply is a fault")
    func depth() throws {
        _ = try model(text + "createAction('deep', { payload: deep(900) });")

        let fault = #expect(throws: Model.Fault.self) {
            try model(text + "createAction('deep', { payload: deep(2000) });")
        }

        #expect(fault?.message.contains("1000 levels") == true)
    }

    @Test(
        "a file that is not UTF-8 is refused with its byte and line",
        arguments: [
            (Array("// caf".utf8) + [0xE9, 0x0A], "model.js:1: the file is not UTF-8: byte 6"),
            (Array("//\n//".utf8) + [0xED, 0xA0, 0x80], "model.js:2: the file is not UTF-8: byte 5"),
            ([0xFF, 0xFE, 0x2F, 0x00], "model.js:1: the file is not UTF-8: byte 0; it seems to be UTF-16"),
            ([0x2F, 0x00, 0x2F, 0x00], "model.js:1: the file is not UTF-8: byte 1; it seems to be UTF-16"),
        ])
    func encoding(file: [UInt8], sentence: String) throws {
        let fault = #expect(throws: Model.Fault.self) { try Model(file, name: "model.js") }

        #expect(fault?.sentence == sentence)
    }

    @Test("a byte order mark is skipped")
    func mark() throws {
        let model = try Model([0xEF, 0xBB, 0xBF] + Array(("#!/usr/bin/env node\n" + text).utf8), name: "model.js")

        #expect(model.description.actions.count == 5)
    }

    @Test(
        "a change as large as it may be is given, and one byte more is a fault of its size",
        arguments: ["x", "\u{1F600}"])
    func size(sign: String) throws {
        let frame = #"{"patch":[{"op":"replace","path":"/it/text","value":""}]}"#
        let (each, most) = (sign.utf8.count, 4000)
        let model = try model(answerBytesMax: frame.utf8.count + most)
        func write(_ count: Int) throws(Model.Fault) {
            _ = try model.reduce("it/write", ["sign": .string(sign), "count": .integer(Int64(count))])
        }

        try write(most / each)
        let view = #expect(throws: Model.Fault.self) { try model.view("text") }
        try model.load(model.description.initial.text)
        let fault = #expect(throws: Model.Fault.self) { try write(most / each + 1) }

        #expect(view?.cause == .size)
        #expect(fault?.cause == .size)
    }

    @Test("the garbage of large views is a few of them")
    func garbage() throws {
        let text = text + "view('large', (state) => 'x'.repeat(1000000) + state.it.n);"
        let model = try model(text, answerBytesMax: 1 << 21)

        var most = 0
        for _ in 0..<40 {
            _ = try model.view("large")
            most = max(most, model.bytesCount)
        }

        #expect(most < 20 << 20)
    }

    @Test("names come in one order to reducers and views, whether the state was loaded or has grown, also long numbers")
    func order() throws {
        let text = """
            const kept = createSlice({ name: 'kept', initialState: { of: {}, log: [] }, reducers: {
              set: (state, { payload }) => { state.of[payload.name] = { z: 1, a: 2 } },
              save: (state) => { state.log = Object.keys(state.of) },
            } });
            view('whole', (state) => state.kept.of);
            view('names', (state) => Object.keys(state.kept.of));
            """
        let names = [
            "b", "1764465600002", "4294967295", "7", "1764465600001", "10", "a", "4294967294", "\u{FF5E}", "\u{1F600}",
        ]
        let grown = try model(text)
        for name in names { _ = try grown.reduce("kept/set", ["name": .string(name)]) }
        var object = JSONObject()
        for name in names { object[name] = ["z": 1, "a": 2] }
        let state = JSONTree(["kept": ["of": .object(object), "log": []]])
        let loaded = try model(text)
        try loaded.load(state.text)
        for model in [grown, loaded] {
            let expected: JSONValue = [
                "7", "10", "4294967294", "1764465600001", "1764465600002", "4294967295", "a", "b", "\u{1F600}",
                "\u{FF5E}",
            ]
            #expect(try model.view("names") == expected)
        }
        #expect(try grown.view("whole").text == loaded.view("whole").text)
        #expect(String(decoding: try grown.view("whole").text, as: UTF8.self).contains(#"{"a":2,"z":1}"#))
    }

    @Test("an engine that has failed is not used again, and the next state is loaded into another one")
    func spent() throws {
        let model = try model()
        for (type, cause) in [("it/loop", Model.Fault.Cause.timeout), ("it/recurse", .engine)] {
            let fault = #expect(throws: Model.Fault.self) { try model.reduce(type) }
            #expect(fault?.cause == cause)
            for _ in 0..<2 {
                let later = #expect(throws: Model.Fault.self) { try model.reduce("it/add") }
                #expect(later?.cause == .engine)
            }
            try model.load(model.description.initial.text)
            _ = try model.reduce("it/add")
            #expect(try model.state()[pointer: "/it/n"] == 1)
        }
    }

    @Test(
        "a copy stays behind a fault that the model has thrown, and behind no other one",
        arguments: [(Model.Fault.Cause.model, true), (.timeout, false), (.size, false), (.engine, false)])
    func copies(cause: Model.Fault.Cause, isKept: Bool) throws {
        let first = try model()
        let tree = JSONTree(first.description.initial)
        try first.load(tree.text)
        let copies = ModelCopies(first, of: tree, bytesMax: 1 << 30) { () throws(Model.Fault) in
            try Model(Array(text.utf8), name: "model.js")
        }

        #expect(throws: Model.Fault.self) {
            try copies.with(tree) { (model) throws(Model.Fault) -> (Void, JSONTree) in
                // A change that the tree does not have.
                if cause != .model { _ = try model.reduce("it/add") }
                throw Model.Fault("no", cause)
            }
        }

        let (isFirst, state) = try copies.with(tree) { (model) throws(Model.Fault) in
            ((model === first, try model.state()), tree)
        }
        #expect(isFirst == isKept)
        #expect(state == tree.value)
    }
}
