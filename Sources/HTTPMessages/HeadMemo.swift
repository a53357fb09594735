import Synchronization

/// A value that a handler has derived from a request's head, kept for later requests with the same head.
///
/// The transport gives requests with equal heads the same memo. A memo holds one value; any thread may use it.
package final class HeadMemo: Sendable {
    private let stored = Mutex<(any AnyObject & Sendable)?>(nil)

    /// Makes an empty memo.
    package init() {}

    /// The stored value; nil where there is none.
    package var value: (any AnyObject & Sendable)? { stored.withLock(\.self) }

    /// Stores a value in place of the previous one.
    package func store(_ value: some AnyObject & Sendable) {
        stored.withLock { $0 = value }
    }
}
