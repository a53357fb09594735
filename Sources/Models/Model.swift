internal import CModelEngine
package import StateJSON
internal import StateStore
internal import Synchronization

/// One thread after the other uses it; the engine is slow to change between threads.
package final class Model: Sendable {
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package var message: String
        /// With line and column from 1 on, if the engine tells them.
        package var file: String?
        package var line: Int?
        package var column: Int?
        package var source: String?
        package var pointer: String?
        /// Only behind a fault of the model is the engine used again.
        package var cause = Cause.model

        package enum Cause: Sendable {
            case model
            case timeout
            case size
            /// Also where the engine's copy of the state is another one.
            case engine
        }

        package var sentence: String {
            let place = [file, line.map { "\($0)" }, column.map { "\($0)" }].compactMap(\.self).joined(separator: ":")
            let pointer = pointer.map { " (at \($0) of the state)" } ?? ""
            return (place.isEmpty ? "" : place + ": ") + message + pointer
        }

        package var description: String {
            guard let source else { return sentence }
            guard let column, (1...source.count + 1).contains(column) else { return "\(sentence)\n    \(source)" }
            let before = source.prefix(column - 1).map { $0 == "\t" ? $0 : " " }
            return "\(sentence)\n    \(source)\n    \(String(before))^"
        }
    }

    package struct Description: Codable, Sendable {
        package struct Slice: Codable, Sendable {
            package var name: String
            package var mount: String
            package var schema: JSONValue?
            /// The state begins as that of an entity adapter.
            package var isTable: Bool
            package var place: JSONPointer { JSONPointer(text: mount) ?? .root }

            private enum CodingKeys: String, CodingKey { case name, mount, schema, isTable = "table" }
        }

        package struct Action: Codable, Sendable {
            package var type: String
            package var schema: JSONValue?
            package var slice: String?
            /// See ``StateStore/Action/isInternal``.
            package var isInternal: Bool
            /// Such a reducer is no function of the state alone.
            package var takesAction: Bool

            private enum CodingKeys: String, CodingKey {
                case type, schema, slice, isInternal = "internal", takesAction
            }
        }

        package struct View: Codable, Sendable {
            package var name: String
            /// Nil for the whole state.
            package var reads: [String]?
            package var parameters: JSONValue?
            package var takesSubject: Bool

            private enum CodingKeys: String, CodingKey { case name, reads, parameters, takesSubject = "subject" }
        }

        package var version: JSONValue?
        package var migrates: Bool
        package var slices: [Slice]
        package var actions: [Action]
        package var views: [View]
        package var initial: JSONValue

        package var initialBytesCount: Int { initial.text.count }
    }

    package enum Outcome: Sendable {
        case patch(JSONValue, later: [JSONValue])
        /// `pointer` is the part of the payload at fault, if any.
        case rejected(code: String, detail: String, pointer: String?)
    }

    package let description: Description
    private let make: @Sendable () -> OpaquePointer?
    private let engine: Mutex<Engine>

    private struct Engine {
        var model: OpaquePointer
        var console: [String] = []
        /// Whether it has had a fault behind which it is not used again.
        var isSpent = false
    }

    package static let answerBytesMax = 1 << 26

    /// Skips a byte order mark of `source`; `time` is of a processor, and a machine without an engine throws.
    package init(
        _ source: [UInt8], name: String, time: Duration = .milliseconds(50), answerBytesMax: Int = answerBytesMax
    ) throws(Fault) {
        let source = try Self.text(source, of: name)
        if let reason = model_engine_open() { throw Fault(message: String(cString: reason)) }
        make = { Self.lending(source) { model_make($0, name, time / .seconds(1), answerBytesMax) } }
        guard let made = make() else { throw Fault(message: "there is no memory for the engine") }
        var engine = Engine(model: made)
        do throws(Fault) {
            let answer = JSONValue.object(try Self.answer(model_description(made), &engine)).text
            do throws(JSONFault) {
                description = try JSON.decode(from: answer, depthMax: 1000, ignoresUnknown: true)
            } catch {
                throw Fault("the model describes itself wrongly: \(error.place): \(error.detail)")
            }
        } catch {
            model_free(made)
            throw error
        }
        self.engine = Mutex(engine)
    }

    deinit { engine.withLock { model_free($0.model) } }

    /// For editors: what a file can import.
    package static var types: String { String(cString: model_types()) }

    /// In another engine where this one has had a fault; O(n) in its size.
    package func load(_ state: [UInt8]) throws(Fault) {
        engine.withLock { engine in
            guard engine.isSpent, let made = make() else { return }
            model_free(engine.model)
            (engine.model, engine.isSpent) = (made, false)
        }
        _ = try answer { model in Self.lending(state) { model_load(model, $0) } }
    }

    /// RFC 6902; the cost is that of what the patch changes.
    package func apply(_ patch: [UInt8]) throws(Fault) {
        _ = try answer { model in Self.lending(patch) { model_apply(model, $0) } }
    }

    package func migrate(_ state: [UInt8], from version: Double) throws(Fault) -> JSONValue {
        try answer { model in Self.lending(state) { model_migrate(model, $0, version) } }["state"] ?? .null
    }

    /// The engine walks its memory for that.
    package var bytesCount: Int { engine.withLock { model_bytes($0.model) } }

    /// Resident, and cheap to count; no engine has more.
    package static var processBytesCount: Int { model_process_bytes() }

    /// O(n) in the size of the state.
    package func collect() { engine.withLock { model_collect($0.model) } }

    package func takeConsole() -> [String] { engine.withLock { exchange(&$0.console, with: []) } }

    /// O(n) in its size.
    package func state() throws(Fault) -> JSONValue { try answer { model_state($0) }["state"] ?? .null }

    /// The state stays as it is where the reducers refuse the action, or throw; a reducer sees `meta` as `action.meta`.
    package func reduce(_ type: String, _ payload: [UInt8], meta: [UInt8]) throws(Fault) -> Outcome {
        var action = JSONWriter(capacity: type.utf8.count + payload.count + meta.count + 40)
        action.raw("{\"type\":")
        action.string(type)
        action.raw(",\"payload\":")
        action.raw(payload)
        action.raw(",\"meta\":")
        action.raw(meta)
        action.byte(UInt8(ascii: "}"))
        let outcome = try answer { model in
            Self.lending(Array(type.utf8)) { type in
                Self.lending(action.bytes) { model_reduce(model, type, $0) }
            }
        }
        if case .object(let rejection)? = outcome["rejected"] {
            let pointer: String? = if case .string(let text)? = rejection["pointer"] { text } else { nil }
            return .rejected(code: rejection["code"].text, detail: rejection["detail"].text, pointer: pointer)
        }
        let later: [JSONValue] = if case .array(let requests)? = outcome["later"] { requests } else { [] }
        return .patch(outcome["patch"] ?? .array([]), later: later)
    }

    package func view(
        _ name: String, parameters: [UInt8] = Array("{}".utf8), subject: String? = nil
    ) throws(Fault) -> JSONValue {
        var context = JSONWriter()
        context.raw("{\"parameters\":")
        context.raw(parameters)
        context.member("subject", subject)
        context.byte(UInt8(ascii: "}"))
        return try answer { model in
            Self.lending(Array(name.utf8)) { name in Self.lending(context.bytes) { model_view(model, name, $0) } }
        }["value"] ?? .null
    }

    // MARK: The engine's texts

    private static func lending<Result>(_ bytes: [UInt8], _ body: (ModelText) -> Result) -> Result {
        // The engine wants a pointer also to no bytes.
        (bytes.isEmpty ? [0] : bytes).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { body(ModelText(bytes: $0.baseAddress, length: bytes.count)) }
        }
    }

    private func answer(_ call: (OpaquePointer) -> ModelText) throws(Fault) -> JSONObject {
        try engine.withLock { (engine) throws(Fault) in
            guard !engine.isSpent else { throw Fault("the engine has failed before", .engine) }
            return try Self.answer(call(engine.model), &engine)
        }
    }

    private static func answer(_ text: ModelText, _ engine: inout Engine) throws(Fault) -> JSONObject {
        let bytes = [UInt8](UnsafeRawBufferPointer(start: text.bytes, count: text.length))
        model_answered(engine.model)
        // An answer has anything that the file and its clients put there: a schema nested as deeply as one likes.
        guard case .object(let answer)? = try? JSONValue(parsing: bytes, depthMax: 1000) else {
            engine.isSpent = true
            throw Fault("the model makes JSON that cannot be read, or that is nested deeper than 1000 levels", .engine)
        }
        if case .array(let lines)? = answer["console"] {
            for case .object(let line) in lines { engine.console.append("\(line["level"].text): \(line["text"].text)") }
        }
        if case .object(let members)? = answer["fault"] {
            let fault = Fault(members)
            engine.isSpent = fault.cause != .model
            throw fault
        }
        return answer
    }

    private static func text(_ file: [UInt8], of name: String) throws(Fault) -> [UInt8] {
        let text = JSONText.withoutByteOrderMark(file)
        var (parser, bytes, offset) = (Unicode.UTF8.ForwardParser(), text.makeIterator(), 0)
        while case .valid(let scalar) = parser.parseScalar(from: &bytes), scalar.first != 0 { offset += scalar.count }
        guard offset < text.count else { return text }
        let line = text[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
        let other = file.starts(with: [0xFF, 0xFE]) || file.contains(0) ? "; it seems to be UTF-16" : ""
        throw Fault(message: "the file is not UTF-8: byte \(offset)\(other)", file: name, line: line)
    }
}

extension Model.Fault {
    package init(_ message: String, _ cause: Cause = .model) { (self.message, self.cause) = (message, cause) }

    fileprivate init(_ fault: JSONObject) {
        func text(_ name: String) -> String? { if case .string(let text)? = fault[name] { text } else { nil } }
        func number(_ name: String) -> Int? { if case .integer(let number)? = fault[name] { Int(number) } else { nil } }
        // A name that the file does not have may be a mistyped one of what is built in.
        var hint = ""
        if let missing = text("missing"), case .array(let known)? = fault["known"] {
            hint = NearestNames.hint(missing, among: known.map { Optional($0).text })
        }
        let cause: Cause =
            if fault["timeout"] == true { .timeout } else if fault["size"] == true { .size } else {
                fault["engine"] == true ? .engine : .model
            }
        self.init(
            message: (text("message") ?? "") + hint, file: text("file"), line: number("line"), column: number("column"),
            source: text("source"), pointer: text("pointer"), cause: cause)
    }
}

extension JSONValue? {
    fileprivate var text: String { if case .string(let text)? = self { text } else { "" } }
}
