package import StateJSON

package struct ValueTest: Sendable {
    package enum Kind: Sendable {
        case equals(JSONValue)
        case atLeast(JSONValue)
        case atMost(JSONValue)
        case exists(Bool)
        /// It is an array in which two elements are equal, or one in which none are.
        case repeats(Bool)
    }

    package var pointer: JSONPointer
    package var kind: Kind

    package init(_ pointer: JSONPointer, _ kind: Kind) { (self.pointer, self.kind) = (pointer, kind) }

    package func holds(for value: JSONValue?) -> Bool {
        switch kind {
        case .exists(let exists): (value != nil) == exists
        case .equals(let wanted): value == wanted
        case .atLeast(let bound): value?.isAbove(bound) == true || value == bound
        case .atMost(let bound): value.flatMap { bound.isAbove($0) } == true || value == bound
        case .repeats(let repeats):
            // The elements of a state have been encoded in one way, so equal ones have equal texts.
            if case .array(let elements)? = value {
                (Set(elements.map(\.text)).count < elements.count) == repeats
            } else {
                false
            }
        }
    }
}

package enum Bisection {
    package enum Miss: String, Error {
        case holdsAtStart = "holds-at-start"
        case neverHolds = "never-holds"
    }

    /// Finds a version at which a test holds, and at the one before it does not, by O(log n) looks: it must not hold at
    /// `start`, and must hold at `end`.
    package static func first(
        after start: Version, through end: Version, _ holds: (Version) throws -> Bool
    ) rethrows -> (found: Result<Version, Miss>, looks: Int) {
        var (low, high, looks) = (start, end, 1)
        guard try holds(high) else { return (.failure(.neverHolds), looks) }
        looks += 1
        guard try low < high && !holds(low) else { return (.failure(.holdsAtStart), looks) }
        while high - low > 1 {
            let middle = low + (high - low) / 2
            looks += 1
            if try holds(middle) { high = middle } else { low = middle }
        }
        return (.success(high), looks)
    }
}

extension JSONValue {
    package var isNumber: Bool { number != nil }

    /// Whole numbers are compared exactly, and others as `Double`; nil if one of the values is not a number.
    fileprivate func isAbove(_ other: JSONValue) -> Bool? {
        if let whole, let otherWhole = other.whole { return whole > otherWhole }
        guard let number, let otherNumber = other.number else { return nil }
        return number > otherNumber
    }

    private var whole: Int128? {
        switch self {
        case .integer(let number): Int128(number)
        case .unsigned(let number): Int128(number)
        case .null, .bool, .double, .decimal, .string, .array, .object: nil
        }
    }

    private var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .unsigned(let number): Double(number)
        case .double(let number): number
        case .decimal(let text): Double(text)
        case .null, .bool, .string, .array, .object: nil
        }
    }
}
