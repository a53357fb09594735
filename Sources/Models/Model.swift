internal import CModelEngine
package import StateJSON

/// A state and its reducers in JavaScript: a file in an engine, which has a copy of the state.
///
/// One thread at a time may use it; the engine is slow to change between threads.
package final class Model {
    /// What is wrong in the file, or was done wrong by a reducer.
    package struct Fault: Error, CustomStringConvertible {
        package var message: String
        /// Where, from 1 on; nil where the engine does not say it.
        package var file: String?
        package var line: Int?
        package var column: Int?
        /// The line of the file.
        package var source: String?
        /// The JSON Pointer into the state; nil where the fault is not in it.
        package var pointer: String?

        package var description: String {
            let place = [file, line.map { "\($0)" }, column.map { "\($0)" }].compactMap(\.self).joined(separator: ":")
            let pointer = pointer.map { " (at \($0) of the state)" } ?? ""
            return (place.isEmpty ? "" : place + ": ") + message + pointer + (source.map { "\n    \($0)" } ?? "")
        }
    }

    /// What a file declares.
    package struct Description {
        /// A part of the state with its reducers.
        package struct Slice {
            package var name: String
            /// Its JSON Pointer in the state.
            package var mount: String
        }

        package struct Action {
            package var type: String
            /// The JSON Schema of its payload; nil for any object.
            package var schema: JSONValue?
        }

        package var slices: [Slice]
        package var actions: [Action]
        package var views: [String]
        package var initial: JSONValue

        /// The size of the initial state as JSON.
        package var initialBytesCount: Int { initial.text.count }
    }

    /// What has become of an action.
    package enum Outcome {
        /// The state is changed by this patch (RFC 6902).
        case patch(JSONValue)
        /// The reducer refuses the action in this state.
        case rejected(code: String, detail: String)
    }

    package let description: Description
    private let engine: OpaquePointer
    /// What the file has written to the console.
    package private(set) var console: [String] = []

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
        engine = made
        self.console = console
    }

    deinit { model_free(engine) }

    /// Sets the state; O(n) in its size.
    package func load(_ state: JSONValue) throws(Fault) {
        _ = try answer(Self.lending(state.text) { model_load(engine, $0) })
    }

    /// The state; O(n) in its size.
    package func state() throws(Fault) -> JSONValue { try answer(model_state(engine))["state"] ?? .null }

    /// Runs the reducers of one action; where they refuse it, or have a fault, the state stays as it is.
    ///
    /// - Parameters:
    ///   - payload: nil for an action without one.
    ///   - meta: what a reducer sees as `action.meta`.
    package func reduce(_ type: String, _ payload: JSONValue?, meta: JSONValue) throws(Fault) -> Outcome {
        let found = Self.lending(Array(type.utf8)) { type in
            Self.lending(payload?.text ?? []) { payload in
                Self.lending(meta.text) { model_reduce(engine, type, payload, $0) }
            }
        }
        let answer = try answer(found)
        guard case .object(let rejection)? = answer["rejected"] else { return .patch(answer["patch"] ?? .array([])) }
        return .rejected(code: rejection["code"].text, detail: rejection["detail"].text)
    }

    /// The value of a view.
    package func view(_ name: String) throws(Fault) -> JSONValue {
        try answer(Self.lending(Array(name.utf8)) { model_view(engine, $0) })["value"] ?? .null
    }

    // MARK: The engine's texts

    private static func lending<Result>(_ bytes: [UInt8], _ body: (ModelText) -> Result) -> Result {
        // The engine wants a pointer also to no bytes.
        (bytes + [0]).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { body(ModelText(bytes: $0.baseAddress, length: bytes.count)) }
        }
    }

    private func answer(_ text: ModelText) throws(Fault) -> JSONObject { try Self.answer(text, &console) }

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
        self.init(
            message: text("message") ?? "", file: text("file"), line: number("line"), column: number("column"),
            source: text("source"), pointer: text("pointer"))
    }
}

extension Model.Description {
    fileprivate init(_ answer: JSONObject) {
        func objects(_ name: String) -> [JSONObject] {
            guard case .array(let elements)? = answer[name] else { return [] }
            return elements.compactMap { if case .object(let object) = $0 { object } else { nil } }
        }
        slices = objects("slices").map { Slice(name: $0["name"].text, mount: $0["mount"].text) }
        actions = objects("actions").map { action in
            let schema = action["schema"] == .null ? nil : action["schema"]
            return Action(type: action["type"].text, schema: schema)
        }
        views = objects("views").map { $0["name"].text }
        initial = answer["initial"] ?? .null
    }
}

extension JSONValue? {
    /// The text of a string; empty for anything else.
    fileprivate var text: String { if case .string(let text)? = self { text } else { "" } }
}
