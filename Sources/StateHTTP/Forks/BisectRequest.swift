package import StateJSON
package import StateStore

/// A search for the first commit after which a test holds.
package struct BisectRequest: Sendable {
    /// What a value has to be like.
    package enum Test: Sendable {
        /// The value at the pointer equals this one.
        case value(JSONValue)
        /// Whether there is a value.
        case exists(Bool)
        /// The value is an array in which two elements are equal.
        case repeats(Bool)
    }

    package var pointer: JSONPointer
    package var test: Test
    /// The version at which the test does not hold; nil for the oldest that is kept.
    package var from: Cursor?
    /// The version at which it holds; nil for the latest.
    package var to: Cursor?
    package var store: VisibleStore
    package var style: Style
    package var requestID: RequestID

    /// Whether the test holds for a value, nil where there is none.
    package func holds(for value: JSONValue?) -> Bool {
        switch test {
        case .exists(let exists): (value != nil) == exists
        case .value(let wanted): value == wanted
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
