package import StateJSON
internal import StateStore

/// A path of RFC 9535 from a root to places in a JSON value, such as `$.tasks[?@.done == false]`.
package struct JSONPath: Sendable {
    let segments: [Segment]
    private let patterns: [LiteralPattern]

    /// Parses a path; O(n).
    ///
    /// - Throws: ``QueryFault`` with the place in the text where it breaks the grammar, or has a type that does not fit.
    package init(_ text: String) throws(QueryFault) {
        var parser = JSONPathParser(text, hasRoot: true)
        segments = try parser.path()
        patterns = parser.patterns
    }

    /// The values at the path, in the order of the standard.
    ///
    /// - Parameter stepsMax: the most values that the evaluation looks at.
    /// - Throws: ``QueryStop``, and ``MemberQuery/Fault`` for patterns that are too large.
    package func values(in root: JSONValue, stepsMax: Int = .max) throws -> [JSONValue] {
        var evaluation = JSONPathEvaluation(root: root, patterns: try patterns.compiled(), stepsMax: stepsMax)
        return try evaluation.values(at: segments, from: root)
    }
}

/// A text that is not a path or a condition.
package struct QueryFault: Error, Sendable, Equatable {
    /// The place in the text, in characters from 0.
    package var offset: Int
    /// The expectation, and a hint.
    package var detail: String
}

extension JSONPath {
    /// A step of a path: from each value to some of its children, or of all its descendants' children.
    struct Segment: Sendable {
        var isDescendant: Bool
        var selectors: [Selector]
    }

    indirect enum Selector: Sendable {
        case name(String)
        case wildcard
        case index(Int)
        case slice(start: Int?, end: Int?, step: Int)
        case filter(Condition)
    }

    struct Relative: Sendable {
        var isOfRoot: Bool
        var segments: [Segment]

        var isSingular: Bool {
            segments.allSatisfy { segment in
                guard !segment.isDescendant, segment.selectors.count == 1 else { return false }
                switch segment.selectors[0] {
                case .name, .index: return true
                case .wildcard, .slice, .filter: return false
                }
            }
        }
    }

    indirect enum Condition: Sendable {
        case any([Condition])
        case all([Condition])
        case not(Condition)
        case comparison(Operand, Comparison, Operand)
        case exists(Relative)
        case matches(Call)
    }

    enum Comparison: String, CaseIterable, Sendable {
        case equal = "=="
        case notEqual = "!="
        case lessOrEqual = "<="
        case greaterOrEqual = ">="
        case less = "<"
        case greater = ">"
    }

    indirect enum Operand: Sendable {
        case literal(JSONValue)
        case path(Relative)
        case call(Call)
    }

    struct Call: Sendable {
        enum Function: String, Sendable {
            case length, count, match, search, value

            var takesValues: Bool { self != .count && self != .value }
            var argumentsCount: Int { isLogical ? 2 : 1 }
            var isLogical: Bool { self == .match || self == .search }
        }

        enum PatternSource: Sendable {
            case data
            case nothing
            /// A literal, by its index among the patterns of the whole text.
            case literal(Int)
        }

        var function: Function
        var arguments: [Operand]
        var pattern = PatternSource.data
    }
}
