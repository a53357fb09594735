internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON

struct Parameters {
    enum Others { case refused, ignored }

    private var values: [ExactText: String?] = [:]

    /// Refuses a name that occurs twice, and an unknown one: a mistyped `since` that is ignored would lose data.
    ///
    /// The Durable Streams protocol asks servers to ignore other names.
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
                throw .badParameter("\(parameter.name) occurs twice in the query")
            }
        }
    }

    func has(_ name: String) -> Bool { values[ExactText(name)] != nil }
    func value(_ name: String) -> String? { values[ExactText(name)] ?? nil }

    func text(_ name: String) throws(Problem) -> String? {
        guard let value = values[ExactText(name)] else { return nil }
        guard let value else { throw .badParameter("\(name) needs a value") }
        return value
    }

    func wholeNumber<Number: FixedWidthInteger>(
        _ name: String, in range: ClosedRange<Number>, _ expectation: String
    ) throws(Problem) -> Number? {
        guard let text = try text(name) else { return nil }
        if let number: Number = Self.wholeNumber(text), range.contains(number) { return number }
        throw .badParameter("\(name) must be \(expectation)")
    }

    func choice(_ name: String, of choices: [String]) throws(Problem) -> String? {
        guard let text = try text(name) else { return nil }
        if choices.contains(where: { JSONPointer.sameBytes($0, text) }) { return text }
        throw .badParameter("\(name) can only be \(choices.joined(separator: " or "))")
    }

    /// The value of a flag: `?pretty` and `?pretty=true` are on.
    func flag(_ name: String) throws(Problem) -> Bool {
        guard let value = values[ExactText(name)] else { return false }
        switch value {
        case nil, "true", "": return true
        case "false": return false
        default: throw .badParameter("\(name) is true or false")
        }
    }

    /// Reads a whole number as JSON spells it (1e2 is 100), or the greatest of the type for a larger one; nil else.
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

extension Contract {
    func wait(_ parameters: Parameters, _ request: Request) throws(Problem) -> Wait? {
        let longest = limits.waitMax
        if parameters.has("wait") {
            guard let text = parameters.value("wait") else { return Wait(duration: limits.waitDefault) }
            guard let seconds = Parameters.number(text), seconds.isFinite else {
                throw .badParameter("wait must be a number of seconds, 0 or more")
            }
            guard seconds > 0 else { return nil }
            let isTooLong = seconds > Double(longest.components.seconds)
            return isTooLong
                ? Wait(duration: longest, applied: Int(longest.components.seconds))
                : Wait(duration: .milliseconds(Int(seconds * 1000)))
        }
        return preferredWait(request)
    }

    func preferredWait(_ request: Request) -> Wait? {
        guard request.head.known.contains(.prefer) else { return nil }
        switch Preferences(request[values: .prefer]).wait {
        case .usual?: return Wait(duration: limits.waitDefault, applied: Int(limits.waitDefault.components.seconds))
        case .seconds(0)?, nil: return nil
        case .seconds(let seconds)?:
            let duration = min(.seconds(min(seconds, 86_400)), limits.waitMax)
            return Wait(duration: duration, applied: Int(duration.components.seconds))
        }
    }

    func until(_ parameters: Parameters) throws(Problem) -> JSONValue? {
        guard let text = try parameters.text("until") else { return nil }
        do throws(JSONFault) {
            return try JSONValue(parsing: Array(text.utf8), depthMax: limits.depthMax)
        } catch {
            throw .badParameter("until must be JSON, a string in quotes: \(error.detail)")
        }
    }

    func debounce(_ parameters: Parameters) throws(Problem) -> Duration? {
        guard parameters.has("debounce") else { return nil }
        let longest = Int(limits.debounceMax / .milliseconds(1))
        let milliseconds = try parameters.wholeNumber(
            "debounce", in: 0...longest, "a number of milliseconds from 0 to \(longest)")
        return milliseconds.flatMap { $0 == 0 ? nil : .milliseconds($0) }
    }
}
