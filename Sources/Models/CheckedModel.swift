package import StateJSON
internal import StateStore

extension Model {
    package static let sampleMeta: JSONValue = ["id": "test", "time": "2030-01-31T12:00:00.000Z"]

    package struct Checks: Sendable {
        fileprivate(set) var payloads: [ExactText: @Sendable ([UInt8]) -> [JSONFault]] = [:]
        fileprivate(set) var parameters: [ExactText: @Sendable ([UInt8]) -> [JSONFault]] = [:]
        fileprivate(set) var slices: [(part: JSONPointer, faults: Serving.Faults)] = []
    }

    package func checks(_ check: Serving.Check) throws(Fault) -> Checks {
        var checks = Checks()
        for slice in description.slices {
            guard let schema = slice.schema else { continue }
            let faults = try check("the schema of the slice \(slice.name)", schema)
            checks.slices.append((slice.place, faults))
        }
        for action in description.actions {
            guard let schema = action.schema else { continue }
            let faults = try check("the payload of \(action.type)", schema)
            checks.payloads[ExactText(action.type)] = { faults($0, nil) }
        }
        for view in description.views {
            guard let schema = view.parameters else { continue }
            if let fault = ViewParameters.fault(in: schema, ofView: view.name) { throw Fault(fault) }
            let faults = try check("the parameters of the view \(view.name)", schema)
            checks.parameters[ExactText(view.name)] = { faults($0, nil) }
        }
        return checks
    }

    package struct Trial: Sendable {
        package var type: String
        package var outcome: Result<String, Fault>
        package var isWhole = true
    }

    /// Runs on the initial state; without a schema the example is an empty object: a failure with that is no fault of
    /// the file, unless the reducer looks at no payload or uses a name that nothing has, or no reducer can be run.
    package func tried() -> [Trial] {
        var tried: [Trial] = []
        var unsuited: [Fault] = []
        for action in description.actions {
            let payload = action.schema.map(Self.sample) ?? [:]
            do throws(Fault) {
                let outcome = try again { () throws(Fault) in
                    try load(description.initial.text)
                    return try reduce(action.type, payload.text, meta: Self.sampleMeta.text)
                }
                switch outcome {
                case .patch(let patch, _):
                    let change = String(decoding: patch.text, as: UTF8.self)
                    tried.append(Trial(type: action.type, outcome: .success(change)))
                case .rejected(let code, let detail, _):
                    let rejection = "rejected with \(code): \(detail)"
                    tried.append(Trial(type: action.type, outcome: .success(rejection), isWhole: false))
                }
            } catch {
                let example = String(decoding: payload.text.prefix(200), as: UTF8.self)
                var fault = error
                fault.message = "\(action.type) with an example of its payload, \(example): \(error.message)"
                if action.schema == nil, action.takesAction, !error.message.hasPrefix("ReferenceError") {
                    let hint = "fails with the payload {}, and has no payload schema to make an example of"
                    tried.append(Trial(type: action.type, outcome: .success("\(hint): \(error)"), isWhole: false))
                    fault.message += "; a payload schema gives it an example that suits"
                    unsuited.append(fault)
                    continue
                }
                tried.append(Trial(type: action.type, outcome: .failure(fault)))
            }
        }
        // Where nothing can be run, nothing is checked.
        return unsuited.count == tried.count ? unsuited.map { Trial(type: "", outcome: .failure($0)) } : tried
    }

    /// The engine may have collected its garbage in the first run.
    func again<Result>(_ check: () throws(Fault) -> Result) throws(Fault) -> Result {
        do throws(Fault) {
            return try check()
        } catch  where error.cause == .timeout {
            return try check()
        }
    }

    package func initialView(_ view: Description.View) throws(Fault) -> String {
        try load(description.initial.text)
        let parameters = (view.parameters.map(Self.sample) ?? [:]).text
        return String(decoding: try self.view(view.name, parameters: parameters).text, as: UTF8.self)
    }

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

    package struct Serving: Sendable {
        package enum Event: Sendable {
            case console(String)
            case failed(String)
            /// The code is a `migrate` that adds the members.
            case lacks(members: [JSONPointer], code: String)
        }

        /// Parts that are the same in the value before may break rules that are newer than they are.
        package typealias Faults = @Sendable (_ json: [UInt8], _ before: (() -> [UInt8])?) -> [JSONFault]

        package typealias Check = @Sendable (_ name: String, _ schema: JSONValue) throws(Fault) -> Faults

        package var read: @Sendable () throws(Fault) -> [UInt8]
        package var name: String
        /// Processor time; a view may take ten times as long.
        package var time: Duration
        package var bytesMax: Int
        package var answerBytesMax: Int
        package var dropped: [JSONPointer]
        package var check: Check
        package var report: @Sendable (Event) -> Void

        package init(
            read: @escaping @Sendable () throws(Fault) -> [UInt8], name: String, time: Duration, bytesMax: Int,
            answerBytesMax: Int = Model.answerBytesMax, dropped: [JSONPointer] = [], check: @escaping Check,
            report: @escaping @Sendable (Event) -> Void
        ) {
            (self.read, self.name, self.time, self.bytesMax) = (read, name, time, bytesMax)
            (self.answerBytesMax, self.dropped) = (answerBytesMax, dropped)
            (self.check, self.report) = (check, report)
        }
    }
}
