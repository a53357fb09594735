internal import CModelEngine
package import StateJSON
internal import StateStore

/// A state and its reducers in JavaScript: a file in an engine, which has a copy of the state.
///
/// One thread after the other uses it; the engine is slow to change between threads.
package final class Model: Sendable {
    /// What is wrong in the file, or was done wrong by a reducer.
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package var message: String
        /// Where, from 1 on; nil where the engine does not say it.
        package var file: String?
        package var line: Int?
        package var column: Int?
        /// The line of the file.
        package var source: String?
        /// The JSON Pointer into the state; nil where the fault is not in it.
        package var pointer: String?
        /// Whether the reducer or the view has used up its time.
        package var isTimeout = false

        package init(_ message: String) { self.message = message }

        init(
            message: String, file: String? = nil, line: Int? = nil, column: Int? = nil, source: String? = nil,
            pointer: String? = nil, isTimeout: Bool = false
        ) {
            (self.message, self.file, self.line, self.column) = (message, file, line, column)
            (self.source, self.pointer, self.isTimeout) = (source, pointer, isTimeout)
        }

        /// The fault without the line of the file.
        package var sentence: String {
            let place = [file, line.map { "\($0)" }, column.map { "\($0)" }].compactMap(\.self).joined(separator: ":")
            let pointer = pointer.map { " (at \($0) of the state)" } ?? ""
            return (place.isEmpty ? "" : place + ": ") + message + pointer
        }

        package var description: String { sentence + (source.map { "\n    \($0)" } ?? "") }
    }

    /// What a file declares.
    package struct Description: Sendable {
        /// A part of the state with its reducers.
        package struct Slice: Sendable {
            package var name: String
            /// Its JSON Pointer in the state.
            package var mount: String
            /// The JSON Schema of its state; nil for any JSON.
            package var schema: JSONValue?
            /// Whether its state begins as that of an entity adapter.
            package var isTable: Bool
        }

        package struct Action: Sendable {
            package var type: String
            /// The JSON Schema of its payload; nil for any object.
            package var schema: JSONValue?
            /// The slice that declares it; nil where none does.
            package var slice: String?
            /// Whether its reducer may look at the action: it is no function of the state alone.
            package var takesAction: Bool
        }

        /// The version that the file gives to itself; nil where it gives none.
        package var version: JSONValue?
        /// Whether the file can make a state of this version of an older one.
        package var migrates: Bool
        package var slices: [Slice]
        package var actions: [Action]
        /// A value that the file computes.
        package struct View: Sendable {
            package var name: String
            /// The members of the state that it gets; nil for the whole state.
            package var reads: [String]?
        }

        package var views: [View]
        package var initial: JSONValue

        /// The size of the initial state as JSON.
        package var initialBytesCount: Int { initial.text.count }
    }

    /// What has become of an action.
    package enum Outcome: Sendable {
        /// The state is changed by this patch (RFC 6902).
        case patch(JSONValue)
        /// The reducer refuses the action in this state.
        ///
        /// `pointer` is the part of the payload at fault; nil where there is none.
        case rejected(code: String, detail: String, pointer: String?)
    }

    package let description: Description
    private let engine: Owned<Engine>

    private struct Engine {
        let model: OpaquePointer
        /// What the file has written to the console.
        var console: [String] = []
    }

    /// Loads a file.
    ///
    /// - Parameters:
    ///   - name: names the file in faults.
    ///   - time: how long a reducer may take of a processor.
    /// - Throws: ``Fault``, also where the machine has no engine.
    package init(_ source: [UInt8], name: String, time: Duration = .milliseconds(50)) throws(Fault) {
        if let reason = model_engine_open() { throw Fault(message: String(cString: reason)) }
        let made = Self.lending(source) { model_make($0, name, time / .seconds(1)) }
        guard let made else { throw Fault(message: "there is no memory for the engine") }
        var console: [String] = []
        do throws(Fault) {
            description = Description(try Self.answer(model_description(made), &console))
        } catch {
            model_free(made)
            throw error
        }
        engine = Owned(Engine(model: made, console: console))
    }

    deinit { engine.withValue { model_free($0.model) } }

    /// The types for TypeScript of what a file can import, for editors.
    package static var types: String { String(cString: model_types()) }

    /// Sets the state; O(n) in its size.
    package func load(_ state: [UInt8]) throws(Fault) {
        _ = try answer { model in Self.lending(state) { model_load(model, $0) } }
    }

    /// Changes the state by a patch (RFC 6902) that was made elsewhere; the cost is that of what it changes.
    package func apply(_ patch: [UInt8]) throws(Fault) {
        _ = try answer { model in Self.lending(patch) { model_apply(model, $0) } }
    }

    /// What the file makes of a state of another version of itself.
    package func migrate(_ state: [UInt8], from version: Double) throws(Fault) -> JSONValue {
        try answer { model in Self.lending(state) { model_migrate(model, $0, version) } }["state"] ?? .null
    }

    /// The bytes of the engine's memory; the engine walks it for that.
    package var bytesCount: Int { engine.withValue { model_bytes($0.model) } }

    /// The resident bytes of this process, which are cheap to count; no engine has more.
    package static var processBytesCount: Int { model_process_bytes() }

    /// Frees what the engine holds and does not need any more; O(n) in the size of the state.
    package func collect() { engine.withValue { model_collect($0.model) } }

    /// Takes what the file has written to the console since it was last taken.
    package func takeConsole() -> [String] { engine.withValue { exchange(&$0.console, with: []) } }

    /// The state; O(n) in its size.
    package func state() throws(Fault) -> JSONValue { try answer { model_state($0) }["state"] ?? .null }

    /// Runs the reducers of one action; where they refuse it, or have a fault, the state stays as it is.
    ///
    /// They have the time of the model twice: what the engine does in between, such as collecting its garbage, is not theirs.
    ///
    /// - Parameters:
    ///   - payload: UTF-8 JSON.
    ///   - meta: UTF-8 JSON: what a reducer sees as `action.meta`.
    package func reduce(_ type: String, _ payload: [UInt8], meta: [UInt8]) throws(Fault) -> Outcome {
        var action = JSONWriter(capacity: type.utf8.count + payload.count + meta.count + 40)
        action.raw("{\"type\":")
        action.string(type)
        action.raw(",\"payload\":")
        action.raw(payload)
        action.raw(",\"meta\":")
        action.raw(meta)
        action.byte(UInt8(ascii: "}"))
        func attempt() throws(Fault) -> JSONObject {
            try answer { model in
                Self.lending(Array(type.utf8)) { type in
                    Self.lending(action.bytes) { model_reduce(model, type, $0) }
                }
            }
        }
        let outcome: JSONObject
        do {
            outcome = try attempt()
        } catch  where error.isTimeout {
            outcome = try attempt()
        }
        if case .object(let rejection)? = outcome["rejected"] {
            let pointer: String? = if case .string(let text)? = rejection["pointer"] { text } else { nil }
            return .rejected(code: rejection["code"].text, detail: rejection["detail"].text, pointer: pointer)
        }
        return .patch(outcome["patch"] ?? .array([]))
    }

    /// The value of a view.
    package func view(_ name: String) throws(Fault) -> JSONValue {
        try answer { model in Self.lending(Array(name.utf8)) { model_view(model, $0) } }["value"] ?? .null
    }

    // MARK: The engine's texts

    private static func lending<Result>(_ bytes: [UInt8], _ body: (ModelText) -> Result) -> Result {
        // The engine wants a pointer also to no bytes.
        (bytes.isEmpty ? [0] : bytes).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { body(ModelText(bytes: $0.baseAddress, length: bytes.count)) }
        }
    }

    private func answer(_ call: (OpaquePointer) -> ModelText) throws(Fault) -> JSONObject {
        try engine.withValue { (engine) throws(Fault) in try Self.answer(call(engine.model), &engine.console) }
    }

    private static func answer(_ text: ModelText, _ console: inout [String]) throws(Fault) -> JSONObject {
        let bytes = [UInt8](UnsafeRawBufferPointer(start: text.bytes, count: text.length))
        guard case .object(let answer)? = try? JSONValue(parsing: bytes, depthMax: 1000) else {
            preconditionFailure("the engine answers with JSON objects")
        }
        if case .array(let lines)? = answer["console"] {
            for case .object(let line) in lines { console.append("\(line["level"].text): \(line["text"].text)") }
        }
        if case .object(let fault)? = answer["fault"] { throw Fault(fault) }
        return answer
    }
}

extension Model.Fault {
    fileprivate init(_ fault: JSONObject) {
        func text(_ name: String) -> String? { if case .string(let text)? = fault[name] { text } else { nil } }
        func number(_ name: String) -> Int? { if case .integer(let number)? = fault[name] { Int(number) } else { nil } }
        // A name that the file does not have may be a mistyped one of what is built in.
        var hint = ""
        if let missing = text("missing"), case .array(let known)? = fault["known"] {
            hint = NearestNames.hint(missing, among: known.map { Optional($0).text })
        }
        self.init(
            message: (text("message") ?? "") + hint, file: text("file"), line: number("line"), column: number("column"),
            source: text("source"), pointer: text("pointer"), isTimeout: fault["timeout"] == true)
    }
}

extension Model.Description {
    fileprivate init(_ answer: JSONObject) {
        func objects(_ name: String) -> [JSONObject] {
            guard case .array(let elements)? = answer[name] else { return [] }
            return elements.compactMap { if case .object(let object) = $0 { object } else { nil } }
        }
        func given(_ value: JSONValue?) -> JSONValue? { value == .null ? nil : value }
        version = given(answer["version"])
        migrates = answer["migrates"] == true
        slices = objects("slices").map {
            Slice(
                name: $0["name"].text, mount: $0["mount"].text, schema: given($0["schema"]),
                isTable: $0["table"] == true)
        }
        actions = objects("actions").map { action in
            let slice: String? = if case .string(let name)? = action["slice"] { name } else { nil }
            return Action(
                type: action["type"].text, schema: given(action["schema"]), slice: slice,
                takesAction: action["takesAction"] == true)
        }
        views = objects("views").map { view in
            let reads: [String]? =
                if case .array(let names)? = view["reads"] { names.map { Optional($0).text } } else { nil }
            return View(name: view["name"].text, reads: reads)
        }
        initial = answer["initial"] ?? .null
    }
}

extension JSONValue? {
    /// The text of a string; empty for anything else.
    fileprivate var text: String { if case .string(let text)? = self { text } else { "" } }
}
