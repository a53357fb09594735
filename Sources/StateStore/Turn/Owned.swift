internal import Synchronization

/// A value that one owner at a time changes, for as long as that takes: reducers run meanwhile.
///
/// No thread waits for it, because its owners come one after the other: from a queue, or from a pool.
///
/// unchecked: the flag lets one owner at a time at the value.
package final class Owned<Value>: @unchecked Sendable {
    private var value: Value
    private let isOwned = Atomic(false)

    package init(_ value: consuming sending Value) { self.value = value }

    /// Runs a function that owns the value.
    ///
    /// - Precondition: there is no other owner.
    package func withValue<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let isTaken = isOwned.exchange(true, ordering: .acquiring)
        precondition(!isTaken, "a value has two owners: a turn has begun inside another one")
        defer { isOwned.store(false, ordering: .releasing) }
        return try body(&value)
    }
}
