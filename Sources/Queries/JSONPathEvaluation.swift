internal import StateJSON
internal import StateStore

/// Recurses by the nesting of the path only, which the parser bounds, and never by the depth of a value; its thread is
/// the one that makes it.
struct JSONPathEvaluation {
    private(set) var stepsLeft: Int
    var heldBytes = 0
    private let patterns: [Pattern]
    private let isQuick, compiles: Bool
    private let work = QueryWork.current
    private let held: HeldMemory
    private let begun: Duration
    private var stepsUntilAsked = stepsPerQuestion

    /// A quick evaluation, on a thread that serves others, compiles nothing, and a match counts what it takes.
    init(patterns: [Pattern], stepsMax: Int, isQuick: Bool) {
        (self.patterns, stepsLeft, self.isQuick) = (patterns, stepsMax, isQuick)
        compiles = !isQuick && !QueryWork.current.servesOthers
        (begun, held) = (work.processorTime(), HeldMemory(work.memory, for: work.client))
    }

    /// The most values in a list: some tens of megabytes.
    private static let valuesMax = 1_000_000
    static let timeMax = Duration.seconds(2)
    private static let stepsPerQuestion = 1000

    mutating func spend(_ steps: Int) throws(QueryStop) {
        stepsLeft -= steps
        if stepsLeft < 0 { throw .values }
        stepsUntilAsked -= steps
        if stepsUntilAsked < 0 { try ask() }
    }

    private mutating func ask() throws(QueryStop) {
        stepsUntilAsked = Self.stepsPerQuestion
        let time = work.processorTime() - begun
        guard time <= Self.timeMax else { throw .time }
        guard work.isWanted(time) else { throw .abandoned }
        if let refusal = held.hold(heldBytes) { throw .memory(refusal) }
    }

    // MARK: Paths

    mutating func values(
        at segments: [JSONPath.Segment], from value: JSONValue
    ) throws(QueryStop) -> [JSONValue] {
        var values = [value]
        for segment in segments {
            var next: [JSONValue] = []
            for value in values {
                if segment.isDescendant {
                    try selectDescendants(of: value, segment.selectors, into: &next)
                } else {
                    for selector in segment.selectors { try select(selector, in: value, into: &next) }
                }
            }
            values = next
        }
        return values
    }

    private mutating func selectDescendants(
        of value: JSONValue, _ selectors: [JSONPath.Selector], into found: inout [JSONValue]
    ) throws(QueryStop) {
        var waiting = [value]
        while let value = waiting.popLast() {
            try spend(1)
            for selector in selectors { try select(selector, in: value, into: &found) }
            switch value {
            case .array(let elements): waiting += elements.reversed()
            case .object(let object): waiting += object.members.reversed().map(\.value)
            default: break
            }
        }
    }

    private mutating func select(
        _ selector: JSONPath.Selector, in value: JSONValue, into found: inout [JSONValue]
    ) throws(QueryStop) {
        try spend(1)
        if found.count > Self.valuesMax { throw .values }
        switch (selector, value) {
        case (.name, _), (.index, _): if let child = Self.child(selector, of: value) { found.append(child) }
        case (.slice(let start, let end, let step), .array(let elements)):
            for index in Self.indices(start, end, step, of: elements.count) {
                try spend(1)
                found.append(elements[index])
            }
        case (.wildcard, .array(let elements)):
            try spend(elements.count)
            found += elements
        case (.wildcard, .object(let object)):
            try spend(object.members.count)
            found += object.members.map(\.value)
        case (.filter(let condition), .array(let elements)):
            for element in elements where try holds(condition, for: element) { found.append(element) }
        case (.filter(let condition), .object(let object)):
            for (_, member) in object.members where try holds(condition, for: member) { found.append(member) }
        default: break
        }
    }

    private static func child(_ selector: JSONPath.Selector, of value: JSONValue) -> JSONValue? {
        switch (selector, value) {
        case (.name(let name), .object(let object)): return object[name]
        case (.index(let index), .array(let elements)):
            let place = index < 0 ? elements.count + index : index
            guard elements.indices.contains(place) else { return nil }
            return elements[place]
        default: return nil
        }
    }

    /// RFC 9535, 2.3.4.2.2.
    private static func indices(_ start: Int?, _ end: Int?, _ step: Int, of count: Int) -> StrideTo<Int> {
        guard step != 0 else { return stride(from: 0, to: 0, by: 1) }
        func normal(_ index: Int) -> Int { index >= 0 ? index : count + index }
        if step > 0 {
            return stride(
                from: min(max(normal(start ?? 0), 0), count), to: min(max(normal(end ?? count), 0), count), by: step)
        }
        return stride(
            from: min(max(normal(start ?? count - 1), -1), count - 1),
            to: end.map { min(max(normal($0), -1), count - 1) } ?? -1, by: step)
    }

    private mutating func value(
        at path: JSONPath.Relative, for current: JSONValue
    ) throws(QueryStop) -> JSONValue? {
        var value = current
        try spend(path.segments.count + 1)
        for segment in path.segments {
            guard let child = Self.child(segment.selectors[0], of: value) else { return nil }
            value = child
        }
        return value
    }

    // MARK: Conditions

    mutating func holds(
        _ condition: JSONPath.Condition, for current: JSONValue
    ) throws(QueryStop) -> Bool {
        switch condition {
        case .any(let alternatives):
            for alternative in alternatives where try holds(alternative, for: current) { return true }
            return false
        case .all(let parts):
            for part in parts where try !holds(part, for: current) { return false }
            return true
        case .not(let inner): return try !holds(inner, for: current)
        case .comparison(let left, let comparison, let right):
            return try compare(try value(of: left, for: current), comparison, try value(of: right, for: current))
        case .exists(let path):
            if path.isSingular { return try value(at: path, for: current) != nil }
            return try !values(at: path.segments, from: current).isEmpty
        case .matches(let call): return try matches(call, for: current)
        }
    }

    private mutating func value(
        of operand: JSONPath.Operand, for current: JSONValue
    ) throws(QueryStop) -> JSONValue? {
        switch operand {
        case .literal(let literal): return literal
        case .path(let path): return try value(at: path, for: current)
        case .call(let call):
            if call.function == .length {
                switch try value(of: call.arguments[0], for: current) {
                case .string(let text)?:
                    try spend(text.utf8.count / 64)
                    return .integer(Int64(text.unicodeScalars.count))
                case .array(let elements)?: return .integer(Int64(elements.count))
                case .object(let object)?: return .integer(Int64(object.members.count))
                default: return nil
                }
            }
            guard case .path(let path) = call.arguments[0] else { return nil }
            let found = try values(at: path.segments, from: current)
            if call.function == .count { return .integer(Int64(found.count)) }
            return found.count == 1 ? .some(found[0]) : .none
        }
    }

    /// How many steps it costs to compile a small pattern, in the time that a step takes.
    private static let patternSteps = 500
    static let patternBytesMax = 1024
    /// The most bytes of a text times instructions of a pattern: a second or two at worst.
    private static let matchMax = 200_000_000
    /// How many of them take about as long as a step, where RE2 looks at each instruction for each byte.
    private static let matchPerStep = 100

    private mutating func matches(_ call: JSONPath.Call, for current: JSONValue) throws(QueryStop) -> Bool {
        guard case .string(var text)? = try value(of: call.arguments[0], for: current) else { return false }
        guard let pattern = try pattern(of: call, for: current) else { return false }
        try spend(text.utf8.count / 64)
        let work = text.utf8.count.multipliedReportingOverflow(by: pattern.size)
        guard !work.overflow, work.partialValue <= Self.matchMax else { throw .values }
        // RE2 mostly needs one look for each byte, so the steps do not say what a match takes: the clock does.
        let steps = work.partialValue / Self.matchPerStep
        if isQuick { try spend(steps) } else { stepsUntilAsked -= steps }
        return text.withUTF8 { pattern.matches($0) }
    }

    /// A pattern of the data counts as compiled for each member.
    private mutating func pattern(of call: JSONPath.Call, for current: JSONValue) throws(QueryStop) -> Pattern? {
        if let number = call.pattern { return patterns[number] }
        guard case .string(let text)? = try value(of: call.arguments[1], for: current) else { return nil }
        try spend(Self.patternSteps + text.utf8.count)
        guard text.utf8.count <= Self.patternBytesMax,
            let expression = IRegexp(text, isWhole: call.function == .match)
        else { return nil }
        switch try CompiledPatterns.shared.compiled(expression, isQuick: !compiles) {
        case .pattern(let pattern):
            try spend(pattern.size)
            return pattern
        case .tooLarge:
            try spend(2 * IRegexp.sizeMax)
            return nil
        case .unreadable: return nil
        }
    }

    private mutating func compare(
        _ left: JSONValue?, _ comparison: JSONPath.Comparison, _ right: JSONValue?
    ) throws(QueryStop) -> Bool {
        switch comparison {
        case .equal: try areEqual(left, right)
        case .notEqual: try !areEqual(left, right)
        case .less: try isLess(left, right)
        case .greater: try isLess(right, left)
        case .lessOrEqual: try isLess(left, right) ? true : try areEqual(left, right)
        case .greaterOrEqual: try isLess(right, left) ? true : try areEqual(left, right)
        }
    }

    private mutating func areEqual(_ left: JSONValue?, _ right: JSONValue?) throws(QueryStop) -> Bool {
        switch (left, right) {
        case (.array(let left)?, .array(let right)?):
            guard left.count == right.count else { return false }
            try spend(left.count)
            for (left, right) in zip(left, right) where try !areEqual(left, right) { return false }
            return true
        case (.object(let left)?, .object(let right)?):
            guard left.members.count == right.members.count else { return false }
            try spend(left.members.count)
            for (name, value) in left.members where try !areEqual(value, right[name]) { return false }
            return true
        default:
            try spend(comparing: left, with: right)
            return left == right
        }
    }

    private mutating func spend(comparing left: JSONValue?, with right: JSONValue?) throws(QueryStop) {
        switch (left, right) {
        case (.string(let left)?, .string(let right)?): try spend(min(left.utf8.count, right.utf8.count) / 64)
        case (.decimal(let digits)?, _), (_, .decimal(let digits)?): try spend(digits.utf8.count / 8)
        default: break
        }
    }

    private mutating func isLess(_ left: JSONValue?, _ right: JSONValue?) throws(QueryStop) -> Bool {
        try spend(comparing: left, with: right)
        return switch (left, right) {
        case (.string(let left)?, .string(let right)?): left.utf8.lexicographicallyPrecedes(right.utf8)
        case (let left?, let right?):
            if let left = JSONNumber(left), let right = JSONNumber(right) { left < right } else { false }
        default: false
        }
    }
}
