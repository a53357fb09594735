package import StateStore

/// A search for the first commit after which a test holds.
package struct BisectRequest: Sendable {
    package var test: ValueTest
    /// The version at which the test does not hold; nil for the oldest that is kept.
    package var from: Cursor?
    /// The version at which it holds; nil for the latest.
    package var to: Cursor?
    package var store: VisibleStore
    package var style: Style
    package var requestID: RequestID
}
