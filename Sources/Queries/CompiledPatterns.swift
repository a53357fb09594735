internal import StateStore
internal import Synchronization

/// The compiled patterns of all queries, by their text; RE2 takes up to 340 kB for each.
///
/// Any thread may call any method.
final class CompiledPatterns: Sendable {
    static let shared = CompiledPatterns()
    static let countMax = 128

    private let known = Mutex<[IRegexp: IRegexp.Compiled]>([:])

    /// A quick call, on a thread that serves others, throws ``QueryStop/elsewhere`` for what is yet to compile.
    func compiled(_ expression: IRegexp, isQuick: Bool) throws(QueryStop) -> IRegexp.Compiled {
        if let known = known.withLock({ $0[expression] }) { return known }
        guard !isQuick else { throw .elsewhere }
        let compiled = expression.compiled()
        known.withLock { known in
            // Patterns in use come again.
            if known.count >= Self.countMax { known = [:] }
            known[expression] = compiled
        }
        return compiled
    }
}

struct LiteralPattern: Sendable {
    let expression: IRegexp
    /// The place in the text, in characters from 0.
    let offset: Int
    /// Whether it has to be readable; in a whole JSONPath it matches nothing otherwise.
    let isOfFilter: Bool

    static let expectation =
        #"expected a pattern of RFC 9485: write [0-9] for \d, [A-Za-z0-9_] for \w, [Aa] for a letter of either case, and \+ for a plus sign"#
}

extension [LiteralPattern] {
    func compiled(isQuick: Bool = false) throws -> [Pattern?] {
        var sizeLeft = IRegexp.sizeMax
        return try map { (literal) throws -> Pattern? in
            let compiled = try CompiledPatterns.shared.compiled(literal.expression, isQuick: isQuick)
            if case .unreadable = compiled {
                guard literal.isOfFilter else { return nil }
                throw MemberQuery.Fault(
                    parameter: "filter", offset: literal.offset, detail: LiteralPattern.expectation)
            }
            if case .pattern(let pattern) = compiled {
                sizeLeft -= pattern.size
                if sizeLeft >= 0 { return pattern }
            }
            throw MemberQuery.Fault(
                parameter: "filter", offset: literal.offset,
                detail: "the patterns of a filter may repeat large classes such as \\p{L} some 20 times in all")
        }
    }
}
