package import StateJSON

/// A test of the value at a place in the state.
package struct ValueTest: Sendable {
    /// What the value has to be like.
    package enum Kind: Sendable {
        /// It equals this one.
        case equals(JSONValue)
        /// Whether there is a value.
        case exists(Bool)
        /// It is an array in which two elements are equal, or one in which none are.
        case repeats(Bool)
    }

    package var pointer: JSONPointer
    package var kind: Kind

    package init(_ pointer: JSONPointer, _ kind: Kind) { (self.pointer, self.kind) = (pointer, kind) }

    /// Whether the test holds for a value, nil where there is none.
    package func holds(for value: JSONValue?) -> Bool {
        switch kind {
        case .exists(let exists): (value != nil) == exists
        case .equals(let wanted): value == wanted
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

/// The search for the version at which a test begins to hold.
package enum Bisection {
    /// Why there is no such version.
    package enum Miss: String, Error {
        case holdsAtStart = "holds-at-start"
        case neverHolds = "never-holds"
    }

    /// Finds a version at which a test holds, and at the one before it does not, by O(log n) looks.
    ///
    /// - Parameters:
    ///   - start: a version at which the test must not hold.
    ///   - end: a later one at which it must hold.
    ///   - holds: looks at the state of a version.
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
