internal import StateJSON

struct SchemaCheck {
    static let depthMax = 3000

    private let schema: JSONSchema
    private let document: JSONDocument
    private let checksFormats: Bool
    private let stepsMax: Int
    private var steps = 0
    private var depth = 0
    /// The check ends with the last one.
    private var most = 0
    private var isStopped = false
    private(set) var faults: [JSONFault] = []
    /// Places of keys, and numbers of elements with their bits inverted.
    private var way: [Int] = []
    private var equalElements = EqualElements()

    private typealias Rules = SchemaRules

    init(_ schema: JSONSchema, _ document: JSONDocument, checksFormats: Bool, stepsMax: Int) {
        (self.schema, self.document, self.checksFormats) = (schema, document, checksFormats)
        self.stepsMax = stepsMax
    }

    mutating func run(most: Int) {
        // Nearly every value fits, and to find that out costs less without a list of faults.
        guard !fits(0, document.root), !isStopped else { return }
        (self.most, steps) = (most, 0)
        _ = fits(0, document.root)
    }

    private var isLoud: Bool { faults.count < most }

    private mutating func fits(_ number: Rules.Number, _ value: Int) -> Bool {
        if number == Rules.anything { return true }
        if number == Rules.nothing { return fault("the schema allows no value here") }
        if isStopped { return false }
        steps += 1
        if steps > stepsMax { return stop(value, "the schema has too many choices for a value of this size") }
        if depth == Self.depthMax { return stop(value, "is nested too deeply for its schema") }
        depth += 1
        defer { depth -= 1 }
        var fits = true
        for position in schema.rules.schemas[number] where fits || isLoud {
            fits = holds(schema.rules.rules[position], value) && fits
        }
        return fits
    }

    private mutating func fitsQuietly(_ number: Rules.Number, _ value: Int) -> Bool {
        let most = most
        self.most = 0
        defer { self.most = most }
        return fits(number, value)
    }

    private mutating func fits(_ number: Rules.Number, _ value: Int, step: Int) -> Bool {
        guard isLoud else { return fits(number, value) }
        way.append(step)
        defer { way.removeLast() }
        return fits(number, value)
    }

    private mutating func holds(_ rule: Rules.Rule, _ value: Int) -> Bool {
        switch rule {
        case .never: fault("the schema allows no value here")
        case .reference(let number): fits(number, value)
        case .type(let types):
            document.types(value).isDisjoint(with: types)
                ? fault("expected \(types.text)") : true
        case .all(let list): allHold(list, value)
        case .any(let list): anyHolds(list, value)
        case .one(let list): oneHolds(list, value)
        case .not(let number): !fitsQuietly(number, value) || fault("fits what the schema does not allow")
        case .condition(let condition, let then, let otherwise):
            fits(fitsQuietly(condition, value) ? then : otherwise, value)
        case .oneOf(let values, let isConstant): isOne(of: values, isConstant: isConstant, value)
        case .limit(let limit, let number, let wanted): keeps(limit, number, wanted, value)
        case .count(let part, let isMost, let limit): keepsCount(part, isMost, limit, value)
        default: holdsInside(rule, value)
        }
    }

    private mutating func holdsInside(_ rule: Rules.Rule, _ value: Int) -> Bool {
        switch (rule, document.kind(value)) {
        case (.pattern(let number), UInt8(ascii: "\"")): matches(schema.rules.patterns[number], value)
        case (.format(let format), UInt8(ascii: "\"")):
            !checksFormats || format.matches(document.utf8(value)) || fault("expected \(format.sentence)")
        case (.elements(let list, let rest), UInt8(ascii: "[")): elementsFit(list, rest: rest, value)
        case (.uniqueItems, UInt8(ascii: "[")): areUnique(value)
        case (.contains(let number), UInt8(ascii: "[")): anyElementFits(number, value)
        case (.members(let named, let patterns, let rest), UInt8(ascii: "{")):
            membersFit(named, patterns: patterns, rest: rest, value)
        case (.memberNames(let number), UInt8(ascii: "{")): namesFit(number, value)
        case (.required(let names), UInt8(ascii: "{")): has(names, value)
        case (.namesBeside(let name, let names), UInt8(ascii: "{")):
            !hasMember(name, value) || has(names, beside: name, value)
        case (.schemaBeside(let name, let number), UInt8(ascii: "{")): !hasMember(name, value) || fits(number, value)
        default: true
        }
    }

    private mutating func matches(_ pattern: Pattern, _ value: Int) -> Bool {
        pattern.matches(document.utf8(value)) || fault("failed to match the pattern \(pattern.text)")
    }

    private mutating func allHold(_ list: Rules.Positions, _ value: Int) -> Bool {
        var fits = true
        for position in list where fits || isLoud { fits = self.fits(schema.rules.lists[position], value) && fits }
        return fits
    }

    private mutating func anyHolds(_ list: Rules.Positions, _ value: Int) -> Bool {
        for position in list where fitsQuietly(schema.rules.lists[position], value) { return true }
        return fault("fits none of the \(list.count) schemas of anyOf")
    }

    private mutating func oneHolds(_ list: Rules.Positions, _ value: Int) -> Bool {
        var count = 0
        for position in list where count < 2 { count += fitsQuietly(schema.rules.lists[position], value) ? 1 : 0 }
        switch count {
        case 0: return fault("fits none of the \(list.count) schemas of oneOf")
        case 1: return true
        default: return fault("fits more than one of the schemas of oneOf")
        }
    }

    private mutating func isOne(of values: Rules.Positions, isConstant: Bool, _ value: Int) -> Bool {
        for position in values where document.equals(value, schema.rules.values[position]) { return true }
        guard isLoud else { return false }
        let wanted: JSONValue =
            isConstant ? schema.rules.values[values.lowerBound] : .array(Array(schema.rules.values[values]))
        return fault(isConstant ? "expected " : "expected one of ", wanted)
    }

    private mutating func keeps(_ limit: Rules.Limit, _ number: JSONNumber, _ wanted: Int, _ value: Int) -> Bool {
        guard let found = document.number(value) else { return true }
        let (isKept, sentence) =
            switch limit {
            case .maximum: (found <= number, "expected at most ")
            case .minimum: (found >= number, "expected at least ")
            case .exclusiveMaximum: (found < number, "expected less than ")
            case .exclusiveMinimum: (found > number, "expected more than ")
            case .multipleOf: (found.isMultiple(of: number), "expected a multiple of ")
            }
        guard isLoud, !isKept else { return isKept }
        return fault(sentence, schema.rules.values[wanted])
    }

    private mutating func keepsCount(_ part: Rules.Part, _ isMost: Bool, _ limit: Int, _ value: Int) -> Bool {
        guard let count = document.count(of: part, in: value) else { return true }
        return (isMost ? count <= limit : count >= limit)
            || fault("expected at \(isMost ? "most" : "least") \(limit) \(part.rawValue)")
    }

    private mutating func areUnique(_ array: Int) -> Bool {
        guard let (first, second) = equalElements.firstTwo(of: array, in: document) else { return true }
        return fault("is the same as the element \(first)", below: String(second))
    }

    private mutating func anyElementFits(_ number: Rules.Number, _ array: Int) -> Bool {
        for element in document.children(of: array) where fitsQuietly(number, element) { return true }
        return fault("expected an element that fits the schema of contains")
    }

    private mutating func elementsFit(_ list: Rules.Positions, rest: Rules.Number, _ array: Int) -> Bool {
        var fits = true
        for (index, element) in document.children(of: array).enumerated() {
            guard fits || isLoud else { return false }
            if index < list.count {
                fits = self.fits(schema.rules.lists[list.lowerBound + index], element, step: ~index) && fits
            } else if rest == Rules.anything {
                return fits
            } else if rest == Rules.nothing, !list.isEmpty {
                fits = fault("the schema has no such element", below: String(index))
            } else {
                fits = self.fits(rest, element, step: ~index) && fits
            }
        }
        return fits
    }

    private mutating func membersFit(
        _ named: Rules.Positions, patterns: Rules.Positions, rest: Rules.Number, _ object: Int
    ) -> Bool {
        var fits = true
        for value in document.children(of: object) {
            guard fits || isLoud else { return false }
            let (key, name) = (value - 1, document.utf8(value - 1))
            let number = schema.rules.schema(of: name, among: named)
            if let number { fits = self.fits(number, value, step: key) && fits }
            var isKnown = number != nil
            if !patterns.isEmpty, fits || isLoud {
                fits = patternsFit(patterns, key, &isKnown) && fits
            }
            if !isKnown, rest == Rules.nothing {
                fits = faultOfMember(key, "the schema has no such member")
            } else if !isKnown {
                fits = self.fits(rest, value, step: key) && fits
            }
        }
        return fits
    }

    private mutating func patternsFit(_ patterns: Rules.Positions, _ key: Int, _ isKnown: inout Bool) -> Bool {
        var fits = true
        for position in patterns where fits || isLoud {
            let (pattern, number) = schema.rules.patternMembers[position]
            guard schema.rules.patterns[pattern].matches(document.utf8(key)) else { continue }
            isKnown = true
            fits = self.fits(number, key + 1, step: key) && fits
        }
        return fits
    }

    private mutating func namesFit(_ number: Rules.Number, _ object: Int) -> Bool {
        var fits = true
        for value in document.children(of: object) {
            guard fits || isLoud else { return false }
            // A key is a string as values are.
            if !fitsQuietly(number, value - 1) {
                fits = faultOfMember(value - 1, "the schema does not allow this name")
            }
        }
        return fits
    }

    private func hasMember(_ name: Rules.Positions, _ object: Int) -> Bool {
        schema.rules.bytes.withUnsafeBufferPointer {
            document.hasMember(UnsafeBufferPointer(rebasing: $0[name]), object)
        }
    }

    private mutating func has(_ names: Rules.Positions, beside other: Rules.Positions? = nil, _ object: Int) -> Bool {
        var hasAll = true
        for position in names where !hasMember(schema.rules.names[position], object) {
            guard isLoud else { return false }
            let sentence = other.map { "is missing beside \(schema.rules.string($0))" } ?? "is missing"
            _ = fault(sentence, below: schema.rules.string(schema.rules.names[position]))
            hasAll = false
        }
        return hasAll
    }

    private mutating func fault(_ sentence: @autoclosure () -> String, below name: String? = nil) -> Bool {
        guard isLoud else { return false }
        let tokens = way.map { $0 < 0 ? String(~$0) : document.string($0) } + (name.map { [$0] } ?? [])
        faults.append(JSONFault(.mismatch, at: JSONPointer(tokens), sentence()))
        return false
    }

    private mutating func faultOfMember(_ key: Int, _ sentence: String) -> Bool {
        isLoud ? fault(sentence, below: document.string(key)) : false
    }

    private mutating func fault(_ start: String, _ wanted: JSONValue) -> Bool {
        let text = wanted.text
        return fault(start + (text.count <= 200 ? String(decoding: text, as: UTF8.self) : "what the schema has"))
    }

    /// Ends the check also within a schema whose faults are not taken.
    private mutating func stop(_ value: Int, _ sentence: String) -> Bool {
        isStopped = true
        faults.append(JSONFault(.mismatch, at: document.pointer(to: value), sentence))
        return false
    }
}
