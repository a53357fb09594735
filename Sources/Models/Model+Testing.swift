internal import StateJSON

extension Model {
    package struct Test: Sendable {
        fileprivate var name: String?
        fileprivate var state: JSONValue?
        fileprivate var version: Double?
        fileprivate var actions: [(type: String, payload: [UInt8], meta: [UInt8])] = []
        fileprivate var view: String?
        fileprivate var parameters: [UInt8]
        fileprivate var subject: String?
        fileprivate var path = JSONPointer.root
        fileprivate var expected: Expectation?
        fileprivate var schedule: JSONValue?

        fileprivate enum Expectation {
            case value(JSONValue)
            case rejected(String)
        }

        private static let members = [
            "name", "state", "from", "action", "actions", "meta", "view", "parameters", "subject", "path", "expect",
            "rejected", "schedule",
        ]
        private static let actionMembers = ["type", "payload", "meta"]

        package init(_ line: [UInt8]) throws(Fault) {
            let value: JSONValue
            do throws(JSONFault) {
                value = try JSONValue(parsing: line, depthMax: 1000)
            } catch {
                let place = error.pointer.tokens.isEmpty ? "" : " at \(error.pointer)"
                throw Fault("it is not JSON\(place): \(error.detail)")
            }
            let test = try Self.object(value, "it is not a test", of: Self.members)
            schedule = test["schedule"]
            switch (test["expect"], test["rejected"], schedule) {
            case (let value?, nil, _): expected = .value(value)
            case (nil, let code?, nil): expected = .rejected(try Self.text(code, "rejected"))
            case (nil, nil, _?): break
            default: throw Fault("it is not a test: it must have either rejected, or expect or schedule or both")
            }
            state = test["state"]
            name = try test["name"].map { (name) throws(Fault) in try Self.text(name, "name") }
            view = try test["view"].map { (view) throws(Fault) in try Self.text(view, "view") }
            parameters = (test["parameters"] ?? [:]).text
            subject = try test["subject"].map { (subject) throws(Fault) in try Self.text(subject, "subject") }
            switch test["from"] {
            case .integer(let number)?: version = Double(number)
            case nil: break
            default: throw Fault("it is not a test: from must be the version of the file that has made the state")
            }
            if let given = test["path"] {
                guard let pointer = JSONPointer(text: try Self.text(given, "path")) else {
                    throw Fault("it is not a test: path must be a JSON Pointer, such as /counter/value")
                }
                path = pointer
            }
            var given: [JSONValue] = []
            switch (test["action"], test["actions"]) {
            case (let action?, nil): given = [action]
            case (nil, .array(let actions)?): given = actions
            case (nil, nil) where view != nil || version != nil: break
            default: throw Fault("it is not a test: it must have one of action, actions (an array), view and from")
            }
            let meta = test["meta"] ?? Model.sampleMeta
            for each in given {
                let action = try Self.object(each, "one of its actions is not an action", of: Self.actionMembers)
                guard let type = action["type"] else { throw Fault("it is not a test: an action must have a type") }
                actions.append(
                    (try Self.text(type, "type"), (action["payload"] ?? [:]).text, (action["meta"] ?? meta).text))
            }
            if case .rejected? = expected, actions.isEmpty {
                throw Fault("it is not a test: only an action can be rejected")
            }
        }

        private static func text(_ value: JSONValue, _ name: String) throws(Fault) -> String {
            guard case .string(let text) = value else { throw Fault("it is not a test: \(name) must be a text") }
            return text
        }

        private static func object(
            _ value: JSONValue, _ problem: String, of known: [String]
        ) throws(Fault) -> JSONObject {
            guard case .object(let object) = value else { throw Fault("\(problem): it is an object") }
            for (name, _) in object.members where !known.contains(name) {
                let hint = NearestNames.hint(name, among: known)
                let names = known.joined(separator: ", ")
                throw Fault("\(problem): it has a member \(name), and the known members are \(names)\(hint)")
            }
            return object
        }
    }

    /// Nil without a difference; a payload that does not fit is rejected as `invalid-action`.
    package func failure(of test: Test, checks: Checks) -> String? {
        let found: String?
        do throws(Fault) {
            found = try again { () throws(Fault) in try run(test, checks) }
        } catch { found = "\(error)" }
        return found.map { [test.name, $0].compactMap(\.self).joined(separator: ": ") }
    }

    private func run(_ test: Test, _ checks: Checks) throws(Fault) -> String? {
        var state = test.state ?? description.initial
        if let version = test.version { state = try migrate(state.text, from: version) }
        try load(state.text)
        var later: [JSONValue] = []
        for (index, (type, payload, meta)) in test.actions.enumerated() {
            let subject = test.actions.count == 1 ? "it" : "action \(index + 1), \(type),"
            guard description.actions.contains(where: { $0.type.utf8.elementsEqual(type.utf8) }) else {
                return "the model has no action \(type)"
            }
            var rejection: (code: String, detail: String)?
            if let fault = checks.payloads[ExactText(type)]?(payload).first {
                rejection = ("invalid-action", "its payload does not fit: \(fault.pointer): \(fault.detail)")
            } else {
                switch try reduce(type, payload, meta: meta) {
                case .rejected(let code, let detail, _): rejection = (code, detail)
                case .patch(_, let requests): later += requests
                }
            }
            guard let (code, detail) = rejection else { continue }
            guard case .rejected(let wanted)? = test.expected, index == test.actions.count - 1 else {
                return "\(subject) is rejected with \(code): \(detail)"
            }
            return code == wanted ? nil : "\(subject) is rejected with \(code) (\(detail)), and not with \(wanted)"
        }
        if let wanted = test.schedule,
            let difference = Self.difference(of: .array(later), from: wanted, at: .root, in: "the schedule")
        {
            return difference
        }
        let wanted: JSONValue
        switch test.expected {
        case nil: return nil
        case .rejected(let code)?: return "it is not rejected with \(code)"
        case .value(let value)?: wanted = value
        }
        let value: JSONValue
        if let name = test.view {
            if let fault = checks.parameters[ExactText(name)]?(test.parameters).first {
                return "the parameters of the view \(name) do not fit: \(fault.pointer): \(fault.detail)"
            }
            value = try view(name, parameters: test.parameters, subject: test.subject)
        } else {
            value = try self.state()
        }
        guard let part = value[pointer: test.path] else { return "there is nothing at \(test.path)" }
        return Self.difference(of: part, from: wanted, at: test.path, in: test.view.map { "the view \($0)" })
    }

    private static func difference(
        of found: JSONValue, from wanted: JSONValue, at path: JSONPointer, in view: String?
    ) -> String? {
        guard found != wanted else { return nil }
        var patch = JSONPatch()
        patch.compare(wanted.text, found.text)
        func told(_ value: JSONValue?) -> String {
            guard let text = value?.text else { return "missing" }
            return String(decoding: text.prefix(200), as: UTF8.self) + (text.count > 200 ? "..." : "")
        }
        // Members in another order are no difference.
        let pointers = patch.changedPointers.filter { found[pointer: $0] != wanted[pointer: $0] }
        let places = pointers.prefix(10).map { pointer in
            let place = JSONPointer(path.tokens + pointer.tokens)
            let name = place.tokens.isEmpty ? view ?? "the state" : (view.map { "\($0) at " } ?? "") + place.description
            return "\(name) is \(told(found[pointer: pointer])), expected \(told(wanted[pointer: pointer]))"
        }
        let more = pointers.count - places.count
        return (places + (more > 0 ? ["and \(more) more"] : [])).joined(separator: "; ")
    }
}
