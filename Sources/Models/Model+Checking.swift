package import StateJSON

/// The checks of a model without a server.
extension Model {
    /// A line of a file of tests: an action in a state, and what has to come of it.
    package struct Test {
        package var state: JSONValue?
        package var type: String
        package var payload: JSONValue?
        package var meta: JSONValue
        /// The state behind the action, or the code of the rejection.
        package var expected: Result<JSONValue, Rejected>

        package struct Rejected: Error {
            package var code: String
        }

        /// Reads a line; nil for one of another form.
        package init?(_ line: [UInt8]) {
            guard case .object(let test)? = try? JSONValue(parsing: line, depthMax: 1000),
                case .object(let action)? = test["action"], case .string(let type)? = action["type"]
            else { return nil }
            switch (test["expect"], test["rejected"]) {
            case (let state?, nil): expected = .success(state)
            case (nil, .string(let code)?): expected = .failure(Rejected(code: code))
            default: return nil
            }
            state = test["state"]
            self.type = type
            payload = action["payload"]
            meta = test["meta"] ?? Model.sampleMeta
        }
    }

    /// What `action.meta` is where no server sets it.
    package static let sampleMeta: JSONValue = ["id": "test", "time": "2030-01-31T12:00:00.000Z"]

    /// Makes the checks of all schemas of the file.
    ///
    /// - Returns: the check of an action's payload, by the action's type.
    package func checks(_ check: Serving.Check) throws(Fault) -> [ExactText: @Sendable ([UInt8]) -> [JSONFault]] {
        var checks: [ExactText: @Sendable ([UInt8]) -> [JSONFault]] = [:]
        for slice in description.slices {
            if let schema = slice.schema { _ = try check("the schema of the slice \(slice.name)", schema) }
        }
        for action in description.actions {
            guard let schema = action.schema else { continue }
            let faults = try check("the payload of \(action.type)", schema)
            checks[ExactText(action.type)] = { faults($0, nil) }
        }
        return checks
    }

    /// Runs a test.
    ///
    /// - Parameter checks: those of ``checks(_:)``; a payload that does not fit is rejected as `invalid-action`.
    /// - Returns: what is otherwise than it says; nil where nothing is.
    package func failure(
        of test: Test, checks: [ExactText: @Sendable ([UInt8]) -> [JSONFault]]
    ) throws(Fault) -> String? {
        guard description.actions.contains(where: { $0.type.utf8.elementsEqual(test.type.utf8) }) else {
            return "the model has no action \(test.type)"
        }
        if let fault = checks[ExactText(test.type)]?((test.payload ?? [:]).text).first {
            if case .failure(let wanted) = test.expected, wanted.code == "invalid-action" { return nil }
            return "its payload does not fit: \(fault.pointer): \(fault.detail)"
        }
        try load((test.state ?? description.initial).text)
        let outcome: Outcome
        do {
            outcome = try reduce(test.type, (test.payload ?? [:]).text, meta: test.meta.text)
        } catch {
            return "\(error)"
        }
        switch (outcome, test.expected) {
        case (.rejected(let code, let detail, _), .failure(let wanted)):
            return code == wanted.code ? nil : "it is rejected with \(code) (\(detail)), and not with \(wanted.code)"
        case (.rejected(let code, let detail, _), .success): return "it is rejected with \(code): \(detail)"
        case (.patch, .failure(let wanted)): return "it is not rejected with \(wanted.code)"
        case (.patch, .success(let wanted)):
            return Self.difference(of: try state(), from: wanted)
        }
    }

    /// Where a state is otherwise than expected, with both values; nil where it is not.
    private static func difference(of found: JSONValue, from wanted: JSONValue) -> String? {
        guard found != wanted else { return nil }
        var patch = JSONPatch()
        patch.compare(wanted.text, found.text)
        func told(_ value: JSONValue?) -> String {
            guard let text = value?.text else { return "missing" }
            return String(decoding: text.prefix(200), as: UTF8.self) + (text.count > 200 ? "..." : "")
        }
        let places = patch.changedPointers.prefix(10).map { pointer in
            let place = pointer.tokens.isEmpty ? "the state" : pointer.description
            return "\(place) is \(told(found[pointer: pointer])), expected \(told(wanted[pointer: pointer]))"
        }
        let more = patch.changedPointers.count - places.count
        return (places + (more > 0 ? ["and \(more) more"] : [])).joined(separator: "; ")
    }

    /// Runs each reducer once on the initial state, with an example made of its schema.
    ///
    /// Without a schema the example is an empty object. What fails with that is no fault of the file, unless the reducer
    /// looks at no payload or uses a name that nothing has.
    ///
    /// - Returns: for each action its type and what has come of it, or its fault.
    package func tried() throws(Fault) -> [(type: String, outcome: Result<String, Fault>)] {
        var tried: [(String, Result<String, Fault>)] = []
        for action in description.actions {
            try load(description.initial.text)
            let payload = action.schema.map(Self.sample) ?? [:]
            do {
                switch try reduce(action.type, payload.text, meta: Self.sampleMeta.text) {
                case .patch(let patch):
                    tried.append((action.type, .success(String(decoding: patch.text, as: UTF8.self))))
                case .rejected(let code, let detail, _):
                    tried.append((action.type, .success("rejected with \(code): \(detail)")))
                }
            } catch {
                let example = String(decoding: payload.text.prefix(200), as: UTF8.self)
                if action.schema == nil, action.takesAction, !error.message.hasPrefix("ReferenceError") {
                    let hint = "fails with the payload {}, and has no payload schema to make an example of"
                    tried.append((action.type, .success("\(hint): \(error)")))
                    continue
                }
                var fault = error
                fault.message = "\(action.type) with an example of its payload, \(example): \(error.message)"
                tried.append((action.type, .failure(fault)))
            }
        }
        return tried
    }

    /// A view of the initial state, as JSON.
    package func initialView(_ name: String) throws(Fault) -> String {
        try load(description.initial.text)
        return String(decoding: try view(name).text, as: UTF8.self)
    }

    /// A value that a JSON Schema describes, with the members that it needs.
    private static func sample(of schema: JSONValue) -> JSONValue {
        guard case .object(let members) = schema else { return .object(JSONObject()) }
        if let value = members["const"] { return value }
        for name in ["enum", "examples"] {
            if case .array(let values)? = members[name], let first = values.first { return first }
        }
        for name in ["anyOf", "oneOf", "allOf"] {
            if case .array(let choices)? = members[name], let first = choices.first { return sample(of: first) }
        }
        var kind = members["type"]
        if case .array(let kinds)? = kind { kind = kinds.first }
        switch kind {
        case "string"?: return "text"
        case "integer"?, "number"?: return members["minimum"] ?? 1
        case "boolean"?: return true
        case "null"?: return .null
        case "array"?: return .array(members["items"].map { [sample(of: $0)] } ?? [])
        default: break
        }
        var object = JSONObject()
        if case .array(let names)? = members["required"], case .object(let properties)? = members["properties"] {
            for case .string(let name) in names { object[name] = sample(of: properties[name] ?? .object(JSONObject())) }
        }
        return .object(object)
    }
}
