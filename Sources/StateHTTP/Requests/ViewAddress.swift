internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

struct ViewAddress: Sendable {
    private struct Parameter: Sendable {
        let name: String
        let kinds: Set<ViewParameters.Kind>
        let choices: [JSONValue]
        let isRequired: Bool

        var expectation: String {
            guard choices.isEmpty else { return "one of " + choices.map(Self.text).joined(separator: ", ") }
            let words: [(ViewParameters.Kind, String)] = [
                (.boolean, "true or false"), (.integer, "a whole number"), (.number, "a number"), (.string, "a text"),
            ]
            return words.filter { kinds.contains($0.0) }.map(\.1).joined(separator: " or ")
        }

        private static func text(_ value: JSONValue) -> String { String(decoding: value.text, as: UTF8.self) }

        /// A nil text is a name without `=`; `nil` as a literal would be JSON's null.
        func value(of text: String?) -> JSONValue? {
            guard let text else { return kinds.contains(.boolean) ? .some(true) : .none }
            var value = plain(text)
            if value == Optional.none, kinds.contains(.string) { value = .some(.string(text)) }
            guard let value, choices.isEmpty || choices.contains(value) else { return .none }
            return value
        }

        private func plain(_ text: String) -> JSONValue? {
            guard let first = text.utf8.first, let last = text.utf8.last, first > 0x20, last > 0x20,
                // A text that is no JSON is neither.
                var value = try? JSONValue(parsing: Array(text.utf8))
            else { return .none }
            // One number has one spelling, so that 1.0 and 1 name one selection.
            if case .double(let number) = value, let whole = Int64(exactly: number) { value = .integer(whole) }
            let isOfKind =
                switch value {
                case .bool: kinds.contains(.boolean)
                case .integer, .unsigned: kinds.contains(.integer) || kinds.contains(.number)
                case .double, .decimal: kinds.contains(.number)
                case .null, .string, .array, .object: false
                }
            return isOfKind ? .some(value) : .none
        }
    }

    let schema: JSONValue
    private let declaration: ViewParameters
    private let parameters: [Parameter]

    init(_ declaration: ViewParameters) {
        self.declaration = declaration
        switch declaration {
        case .typed(let type): schema = SchemaProbe.schema(of: type)
        case .declared(let declared, _): schema = declared
        }
        let required = Set(schema["required"].elements.map { ExactText($0.string) })
        parameters = schema["properties"].members.members.map { name, schema in
            Parameter(
                name: name, kinds: ViewParameters.kinds(of: schema),
                choices: Self.choices(of: schema), isRequired: required.contains(ExactText(name)))
        }
    }

    private static func choices(of schema: JSONValue) -> [JSONValue] {
        // A value that may be missing is one of these or null.
        let schemas = schema["anyOf"].elements.filter { $0["type"] != "null" }
        let listing = schemas.count == 1 ? schemas[0] : schema
        return listing["enum"].elements.filter { $0 != .null }
    }

    var names: Set<ExactText> { Set(parameters.map { ExactText($0.name) }) }

    func object(of given: Parameters) throws(Problem) -> JSONValue {
        var object = JSONObject()
        for parameter in parameters {
            guard given.has(parameter.name) else {
                guard parameter.isRequired else { continue }
                throw Self.misfit(parameter.name, "\(parameter.name) is missing; it is \(parameter.expectation)")
            }
            guard let value = parameter.value(of: given.value(parameter.name)) else {
                throw Self.misfit(parameter.name, "\(parameter.name) must be \(parameter.expectation)")
            }
            object[parameter.name] = value
        }
        if let fault = declaration.faults(in: JSONValue.object(object).text).first {
            let name = fault.pointer.tokens.first
            throw Self.misfit(name, "\(name ?? "the parameters"): \(fault.detail)")
        }
        return .object(object)
    }

    private static func misfit(_ name: String?, _ detail: String) -> Problem {
        Problem(.badRequest, "bad-parameter", detail, members: name.map { [.string("parameter", $0)] } ?? [])
    }
}

extension Contract {
    package static func fault(in catalogue: Catalogue) -> String? {
        catalogue.views.values.sorted { $0.name < $1.name }.lazy.compactMap { view in
            view.parameters.flatMap { ViewParameters.fault(in: ViewAddress($0).schema, ofView: view.name) }
        }.first
    }

    func selection(ofView name: String, _ parameters: Parameters, _ access: Access) throws(Problem) -> Selection {
        .view(
            name,
            ViewArguments(
                parameters: try schemas.addresses[name]?.object(of: parameters),
                subject: catalogue.views[name]?.takesSubject == true ? access.subject : nil))
    }
}
