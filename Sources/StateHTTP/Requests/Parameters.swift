internal import HTTPMessages
internal import HTTPTypes

/// The query of a request whose parameters are all known to its route.
struct Parameters {
    private var values: [String: String?] = [:]

    /// Checks the names: a mistyped `since` that was silently ignored would lose data.
    init(_ target: RequestTarget, known: Set<String>) throws(Problem) {
        for parameter in target.parameters {
            // `settle` is the former name of `debounce`.
            let name = parameter.name == "settle" && known.contains("debounce") ? "debounce" : parameter.name
            guard known.contains(name) else {
                let list = known.sorted().joined(separator: ", ")
                let names = known.isEmpty ? "this path takes none" : "known here are \(list)"
                throw Problem(
                    .badRequest, "unknown-parameter",
                    "there is no query parameter \(parameter.name.prefix(64)); \(names)")
            }
            guard values.updateValue(parameter.value, forKey: name) == nil else {
                throw Problem(.badRequest, "bad-parameter", "\(parameter.name) stands twice in the query")
            }
        }
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    func value(_ name: String) -> String? { values[name] ?? nil }

    /// A parameter that needs a value.
    func text(_ name: String) throws(Problem) -> String? {
        guard let value = values[name] else { return nil }
        guard let value else { throw Problem(.badRequest, "bad-parameter", "\(name) needs a value") }
        return value
    }

    /// A parameter that is on when it is there: `?pretty`, `?pretty=true`.
    func flag(_ name: String) throws(Problem) -> Bool {
        guard let value = values[name] else { return false }
        switch value {
        case nil, "true", "": return true
        case "false": return false
        default: throw Problem(.badRequest, "bad-parameter", "\(name) is true or false")
        }
    }

    func style() throws(Problem) -> Style { try flag("pretty") ? .pretty : .compact }
}
