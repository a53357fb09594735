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
        case .atLeast(let bound): value == bound || Self.isLess(bound, value)
        case .atMost(let bound): value == bound || Self.isLess(value, bound)
        case .repeats(let repeats):
            // The elements of a state have been encoded in one way, so equal ones have equal texts.
            if case .array(let elements)? = value {
                (Set(elements.map(\.text)).count < elements.count) == repeats
            } else {
                false
            }
        }
    }

    private static func isLess(_ left: JSONValue?, _ right: JSONValue?) -> Bool {
        guard let left = left.flatMap(JSONNumber.init), let right = right.flatMap(JSONNumber.init) else { return false }
        return left < right
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
    package var isNumber: Bool { JSONNumber(self) != nil }
}
