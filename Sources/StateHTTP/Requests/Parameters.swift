internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON

/// The query parameters of a request that its route knows.
struct Parameters {
    enum Others { case refused, ignored }

    private var values: [ExactText: String?] = [:]

    /// Refuses an unknown name, and a known one that occurs twice.
    ///
    /// A mistyped `since` that the server ignores would lose data. The Durable Streams protocol asks servers to ignore
    /// other names.
    init(_ target: RequestTarget, known: Set<ExactText>, others: Others = .refused) throws(Problem) {
        for parameter in target.parameters {
            // `settle` is the former name of `debounce`.
            let given = ExactText(parameter.name)
            let name = given == "settle" && known.contains("debounce") ? "debounce" : given
            guard known.contains(name) else {
                if others == .ignored { continue }
                let list = known.map(\.text).sorted().joined(separator: ", ")
                let names = known.isEmpty ? "this path takes none" : "known here are \(list)"
                throw Problem(
                    .badRequest, "unknown-parameter",
                    "there is no query parameter \(parameter.name.prefix(64)); \(names)")
            }
            guard values.updateValue(parameter.value, forKey: name) == nil else {
                throw Problem(.badRequest, "bad-parameter", "\(parameter.name) occurs twice in the query")
            }
        }
    }

    func has(_ name: String) -> Bool { values[ExactText(name)] != nil }

    func value(_ name: String) -> String? { values[ExactText(name)] ?? nil }

    func text(_ name: String) throws(Problem) -> String? {
        guard let value = values[ExactText(name)] else { return nil }
        guard let value else { throw Problem(.badRequest, "bad-parameter", "\(name) needs a value") }
        return value
    }

    /// The value of a flag: `?pretty` and `?pretty=true` are on.
    func flag(_ name: String) throws(Problem) -> Bool {
        guard let value = values[ExactText(name)] else { return false }
        switch value {
        case nil, "true", "": return true
        case "false": return false
        default: throw Problem(.badRequest, "bad-parameter", "\(name) is true or false")
        }
    }

    /// Reads a whole number without a sign as JSON spells it, so that 1e2 is 100; nil for anything else.
    ///
    /// A number that the type does not hold is the greatest one that it does: it is above every limit.
    static func wholeNumber<Number: FixedWidthInteger>(_ text: String) -> Number? {
        guard let number = Self.number(text), number.isFinite, number == number.rounded() else { return nil }
        // A Double does not have every whole number of 64 bits.
        let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        return (isPlain ? Number(text) : Number(exactly: number)) ?? Number.max
    }

    static func number(_ text: String) -> Double? {
        let isDigit = { (0x30...0x39).contains($0 as UInt8) }
        // A reader of JSON takes white space around the number.
        guard text.utf8.first.map(isDigit) == true, text.utf8.last.map(isDigit) == true,
            (try? JSONValue(parsing: Array(text.utf8))) != nil
        else { return nil }
        return Double(text)
    }

    func style() throws(Problem) -> Style { try flag("pretty") ? .pretty : .compact }
}
