internal import StateJSON

/// RFC 9535, read from left to right.
struct JSONPathParser {
    private let bytes: [UInt8]
    private var index = 0
    private var depth = 0
    private(set) var patterns: [LiteralPattern] = []

    /// The most patterns in a text: each takes up to 340 kB when it matches.
    private static let patternsMax = 32
    private static let depthMax = 32
    /// The largest index (RFC 7493).
    private static let indexMax = 9_007_199_254_740_991

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func wholeCondition() throws(MemberQuery.Fault) -> JSONPath.Condition {
        let condition = try condition()
        skipSpace()
        guard index == bytes.count else { throw unexpected() }
        return condition
    }
}

// MARK: Paths

extension JSONPathParser {
    private mutating func segments() throws(MemberQuery.Fault) -> [JSONPath.Segment] {
        var segments: [JSONPath.Segment] = []
        while true {
            let start = index
            skipSpace()
            if take("..") {
                segments.append(.init(isDescendant: true, selectors: try children()))
            } else if take(".") {
                segments.append(.init(isDescendant: false, selectors: [try shorthand()]))
            } else if peek == UInt8(ascii: "[") {
                segments.append(.init(isDescendant: false, selectors: try bracketed()))
            } else {
                // White space belongs to a path only inside.
                index = start
                return segments
            }
        }
    }

    private mutating func children() throws(MemberQuery.Fault) -> [JSONPath.Selector] {
        peek == UInt8(ascii: "[") ? try bracketed() : [try shorthand()]
    }

    private mutating func shorthand() throws(MemberQuery.Fault) -> JSONPath.Selector {
        if take("*") { return .wildcard }
        let start = index
        while let byte = peek, Self.isOfName(byte), index > start || !Self.isDigit(byte) { index += 1 }
        guard index > start else { throw fault("expected a name or *") }
        return .name(String(decoding: bytes[start..<index], as: UTF8.self))
    }

    private mutating func bracketed() throws(MemberQuery.Fault) -> [JSONPath.Selector] {
        index += 1
        var selectors: [JSONPath.Selector] = []
        repeat {
            skipSpace()
            selectors.append(try selector())
            skipSpace()
        } while take(",")
        guard take("]") else { throw fault("expected , or ]") }
        return selectors
    }

    private mutating func selector() throws(MemberQuery.Fault) -> JSONPath.Selector {
        switch peek {
        case UInt8(ascii: "'"), UInt8(ascii: "\""): return .name(try string())
        case UInt8(ascii: "*"):
            index += 1
            return .wildcard
        case UInt8(ascii: "?"):
            index += 1
            return .filter(try condition())
        default: return try place()
        }
    }

    private mutating func place() throws(MemberQuery.Fault) -> JSONPath.Selector {
        let start = try integer()
        let behind = index
        skipSpace()
        guard take(":") else {
            index = behind
            guard let start else { throw fault("expected a name in quotes, *, an index, a slice or ?") }
            return .index(start)
        }
        skipSpace()
        let end = try integer()
        var step: Int?
        let last = index
        skipSpace()
        if take(":") {
            let colon = index
            skipSpace()
            step = try integer()
            if step == nil { index = colon }
        } else {
            index = last
        }
        return .slice(start: start, end: end, step: step ?? 1)
    }

    private mutating func integer() throws(MemberQuery.Fault) -> Int? {
        let start = index
        _ = take("-")
        let digits = index
        while let byte = peek, Self.isDigit(byte) { index += 1 }
        guard index > start else { return nil }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        let isPlain = index > digits && (bytes[digits] != UInt8(ascii: "0") || text == "0")
        guard isPlain, let number = Int(text), number.magnitude <= Self.indexMax else {
            index = start
            throw fault("expected a whole number without leading zeros, at most \(Self.indexMax)")
        }
        return number
    }
}

// MARK: Conditions

extension JSONPathParser {
    private mutating func condition() throws(MemberQuery.Fault) -> JSONPath.Condition {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthMax else { throw fault("nests deeper than \(Self.depthMax) levels") }
        var alternatives: [JSONPath.Condition] = []
        repeat {
            var parts: [JSONPath.Condition] = []
            repeat {
                parts.append(try part())
                skipSpace()
            } while take("&&")
            alternatives.append(parts.count == 1 ? parts[0] : .all(parts))
        } while take("||")
        return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
    }

    private mutating func part() throws(MemberQuery.Fault) -> JSONPath.Condition {
        skipSpace()
        let isNegated = take("!")
        if isNegated { skipSpace() }
        if take("(") {
            let inner = try condition()
            guard take(")") else { throw unexpected(beside: "or )") }
            return isNegated ? .not(inner) : inner
        }
        let start = index
        let left = try operand()
        if !isNegated {
            let behind = index
            skipSpace()
            if let comparison = JSONPath.Comparison.allCases.first(where: { take($0.rawValue) }) {
                if peek == UInt8(ascii: "=") { throw fault("unexpected =; equality is ==") }
                try checkComparable(left, at: start)
                skipSpace()
                let other = index
                let right = try operand()
                try checkComparable(right, at: other)
                return .comparison(left, comparison, right)
            }
            if peek == UInt8(ascii: "=") { throw fault("= is not an operator; equality is ==") }
            index = behind
        }
        let test: JSONPath.Condition
        switch left {
        case .path(let path): test = .exists(path)
        case .call(let call) where call.function.isLogical: test = .matches(call)
        case .call(let call):
            index = start
            throw fault(
                "\(call.function.rawValue)() is a value; compare it with another one, as in \(call.function.rawValue)(...) > 1"
            )
        case .literal:
            index = start
            throw fault("a literal alone is not a condition; compare it, as in @.name == 'ann'")
        }
        return isNegated ? .not(test) : test
    }

    private func checkComparable(_ operand: JSONPath.Operand, at place: Int) throws(MemberQuery.Fault) {
        switch operand {
        case .literal: return
        case .path(let path):
            guard !path.isSingular else { return }
            throw fault("only a path to one place can be compared: without *, slices, .. and filters", at: place)
        case .call(let call):
            guard call.function.isLogical else { return }
            throw fault("\(call.function.rawValue)() is a condition and has no value to compare", at: place)
        }
    }

    private mutating func operand() throws(MemberQuery.Fault) -> JSONPath.Operand {
        switch peek {
        case UInt8(ascii: "'"), UInt8(ascii: "\""): return .literal(.string(try string()))
        case UInt8(ascii: "@"):
            index += 1
            return .path(.init(segments: try segments()))
        case UInt8(ascii: "$"): throw fault("$ is not available here; @ is the member")
        case let byte? where Self.isDigit(byte) || byte == UInt8(ascii: "-"): return .literal(try number())
        case let byte? where Self.isOfName(byte): return try word()
        default: throw fault("expected @, a text in quotes, a number, true, false, null or a function")
        }
    }

    private mutating func number() throws(MemberQuery.Fault) -> JSONValue {
        let start = index
        while let byte = peek, Self.isDigit(byte) || "+-.eE".utf8.contains(byte) { index += 1 }
        // Losing the error is right: the fault below says more.
        guard let value = try? JSONValue(parsing: Array(bytes[start..<index])) else {
            index = start
            throw fault("expected a number as JSON spells it")
        }
        return value
    }

    private mutating func word() throws(MemberQuery.Fault) -> JSONPath.Operand {
        let start = index
        while let byte = peek, Self.isOfName(byte) { index += 1 }
        let word = String(decoding: bytes[start..<index], as: UTF8.self)
        if take("(") {
            guard let function = JSONPath.Call.Function(rawValue: word) else {
                throw fault(
                    "there is no function \(word.prefix(40)); there are length, count, match, search and value",
                    at: start)
            }
            return .call(try call(function, at: start))
        }
        switch word {
        case "true": return .literal(.bool(true))
        case "false": return .literal(.bool(false))
        case "null": return .literal(.null)
        case "not": throw fault("not is not an operator; write !(...)", at: start)
        default:
            let name = word.prefix(40)
            throw fault("\(name) is a bare word; write @.\(name) for a member and '\(name)' for a text", at: start)
        }
    }

    private mutating func call(_ function: JSONPath.Call.Function, at start: Int) throws(MemberQuery.Fault)
        -> JSONPath.Call
    {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthMax else { throw fault("nests deeper than \(Self.depthMax) levels") }
        var arguments: [JSONPath.Operand] = []
        repeat {
            skipSpace()
            let place = index
            let argument = try operand()
            switch argument {
            case .path(let path) where function.takesValues && !path.isSingular:
                throw fault(
                    "\(function.rawValue)() takes a path to one place: without *, slices, .. and filters", at: place)
            case .literal where !function.takesValues, .call where !function.takesValues:
                throw fault("\(function.rawValue)() takes a path", at: place)
            case .call(let call) where call.function.isLogical:
                throw fault("\(call.function.rawValue)() is a condition and has no value", at: place)
            default: arguments.append(argument)
            }
            skipSpace()
        } while take(",")
        guard take(")") else { throw unexpected(beside: "or )") }
        guard arguments.count == function.argumentsCount else {
            throw fault(
                "\(function.rawValue)() takes \(function.argumentsCount == 1 ? "one argument" : "two arguments")",
                at: start)
        }
        var call = JSONPath.Call(function: function, arguments: arguments)
        if function.isLogical, case .literal(let literal) = arguments[1] {
            // By RFC 9535 a pattern that cannot be read matches nothing, of which whoever writes a filter learns nothing.
            guard case .string(let text) = literal, let expression = IRegexp(text, isWhole: function == .match) else {
                throw fault(LiteralPattern.expectation, at: start)
            }
            guard patterns.count < Self.patternsMax else {
                throw fault("the patterns of a filter are at most \(Self.patternsMax)", at: start)
            }
            call.pattern = patterns.count
            patterns.append(LiteralPattern(expression: expression, offset: fault("", at: start).offset))
        }
        return call
    }
}

// MARK: Texts

extension JSONPathParser {
    /// JSON reads the text, in double quotes.
    private mutating func string() throws(MemberQuery.Fault) -> String {
        let start = index
        let quote = bytes[index]
        let other = quote == UInt8(ascii: "'") ? UInt8(ascii: "\"") : UInt8(ascii: "'")
        index += 1
        var text = [UInt8(ascii: "\"")]
        while let byte = peek, byte != quote {
            if byte == UInt8(ascii: "\\"), index + 1 < bytes.count {
                index += 1
                if bytes[index] == other { throw fault("there is no such escape in a text", at: index - 1) }
                if bytes[index] != UInt8(ascii: "'") { text.append(byte) }
            } else if byte == UInt8(ascii: "\"") {
                text.append(UInt8(ascii: "\\"))
            }
            text.append(bytes[index])
            index += 1
        }
        guard peek == quote else { throw fault("the text has no end", at: start) }
        index += 1
        text.append(UInt8(ascii: "\""))
        // Losing the error is right: its place is one in another text.
        guard case .string(let value)? = try? JSONValue(parsing: text) else {
            throw fault("expected a text with the escapes of JSON, and no control characters", at: start)
        }
        return value
    }
}

// MARK: Characters

extension JSONPathParser {
    private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func take(_ text: String) -> Bool {
        guard bytes[index...].starts(with: text.utf8) else { return false }
        index += text.utf8.count
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { index += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func isOfName(_ byte: UInt8) -> Bool {
        byte >= 0x80 || byte == UInt8(ascii: "_") || isDigit(byte) || (0x41...0x5A).contains(byte & 0xDF)
    }

    private func fault(_ detail: String, at place: Int? = nil) -> MemberQuery.Fault {
        let before = bytes[..<min(place ?? index, bytes.count)]
        return MemberQuery.Fault(parameter: "filter", offset: before.count { $0 & 0xC0 != 0x80 }, detail: detail)
    }

    private func unexpected(beside other: String = "or the end") -> MemberQuery.Fault {
        let rest = bytes[index...]
        for (word, operation) in [("and", "&&"), ("or", "||"), ("AND", "&&"), ("OR", "||"), ("&", "&&"), ("|", "||")]
        where rest.starts(with: word.utf8) {
            return fault("\(word) is not an operator; write \(operation)")
        }
        return fault("expected &&, || \(other)")
    }
}
