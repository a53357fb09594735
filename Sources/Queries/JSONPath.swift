internal import StateJSON

enum JSONPath {
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

        var function: Function
        var arguments: [Operand]
        /// The index of a literal among the patterns of the whole text; nil for a pattern of the data.
        var pattern: Int?
    }
}
