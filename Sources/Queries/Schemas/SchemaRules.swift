internal import StateJSON

/// Entries of the tables refer to each other by position: without references, a check of a small value counts none.
struct SchemaRules {
    typealias Number = Int
    typealias Positions = Range<Int>

    static let anything: Number = -1
    static let nothing: Number = -2

    var schemas: [Positions] = []
    var rules: [Rule] = []
    var lists: [Number] = []
    /// Sorted by the lengths of the names, and by their bytes.
    var members: [Member] = []
    var patternMembers: [(pattern: Int, schema: Number)] = []
    var names: [Positions] = []
    var bytes: [UInt8] = []
    var patterns: [Pattern] = []
    var values: [JSONValue] = []

    struct Member {
        var name: Positions
        var schema: Number
    }

    enum Rule {
        case never
        case reference(Number)
        case type(Types)
        case limit(Limit, JSONNumber, value: Int)
        case oneOf(values: Positions, isConstant: Bool)
        case count(Part, isMost: Bool, Int)
        case pattern(Int)
        case format(Format)
        case uniqueItems
        case contains(Number)
        case elements(Positions, rest: Number)
        case members(Positions, patterns: Positions, rest: Number)
        case memberNames(Number)
        case required(Positions)
        case namesBeside(name: Positions, Positions)
        case schemaBeside(name: Positions, Number)
        case all(Positions)
        case any(Positions)
        case one(Positions)
        case not(Number)
        case condition(Number, then: Number, else: Number)
    }

    enum Limit { case maximum, minimum, exclusiveMaximum, exclusiveMinimum, multipleOf }

    enum Part: String { case elements, members, characters }

    struct Types: OptionSet {
        let rawValue: UInt8

        static let array = Types(rawValue: 1)
        static let boolean = Types(rawValue: 2)
        static let integer = Types(rawValue: 4)
        static let null = Types(rawValue: 8)
        static let number = Types(rawValue: 16)
        static let object = Types(rawValue: 32)
        static let string = Types(rawValue: 64)
    }

    func schema(of name: UnsafeBufferPointer<UInt8>, among named: Positions) -> Number? {
        bytes.withUnsafeBufferPointer { bytes in
            var (low, high) = (named.lowerBound, named.upperBound)
            while low < high {
                let middle = (low + high) / 2
                let found = UnsafeBufferPointer(rebasing: bytes[members[middle].name])
                if found.hasBytes(of: name) { return members[middle].schema }
                if Self.isBefore(found, name) { low = middle + 1 } else { high = middle }
            }
            return nil
        }
    }

    /// Lengths nearly always decide.
    static func isBefore(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
        left.count == right.count ? left.lexicographicallyPrecedes(right) : left.count < right.count
    }

    func string(_ name: Positions) -> String { String(decoding: bytes[name], as: UTF8.self) }
}

extension SchemaRules.Types {
    /// In the order of the bits.
    static let names = ["array", "boolean", "integer", "null", "number", "object", "string"]

    init?(_ name: String) {
        guard let bit = Self.names.firstIndex(where: { JSONPointer.sameBytes($0, name) }) else { return nil }
        self.init(rawValue: 1 << bit)
    }

    var text: String {
        Self.names.enumerated().filter { contains(Self(rawValue: 1 << $0.offset)) }.map { _, name in
            name == "null" ? name : ("aio".contains(name.prefix(1)) ? "an " : "a ") + name
        }.joined(separator: " or ")
    }
}
