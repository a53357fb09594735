import Synchronization

/// A value that a handler has derived from a request's head, kept for later requests with the same head.
///
/// The transport gives requests with equal heads the same memo. A memo holds one value; any thread may use it.
package final class HeadMemo: Sendable {
    private let stored = Mutex<(any AnyObject & Sendable)?>(nil)

    /// Makes an empty memo.
    package init() {}

    /// Returns the stored value, or nil where there is none or one of another type.
    package func value<Value: AnyObject & Sendable>(_ type: Value.Type = Value.self) -> Value? {
        stored.withLock { $0 as? Value }
    }

    /// Stores a value in place of the previous one.
    package func store(_ value: some AnyObject & Sendable) {
        stored.withLock { $0 = value }
    }
}
