internal import Synchronization

/// A value that one owner at a time changes, for as long as that takes: reducers run meanwhile.
///
/// No thread waits for it, because its owners come one after the other, on a queue.
///
/// unchecked: the flag lets one owner at a time at the value.
final class Owned<Value: Sendable>: @unchecked Sendable {
    private var value: Value
    private let isOwned = Atomic(false)

    init(_ value: consuming Value) { self.value = value }

    /// Runs a function that owns the value.
    ///
    /// - Precondition: there is no other owner.
    func withValue<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let isTaken = isOwned.exchange(true, ordering: .acquiring)
        precondition(!isTaken, "a turn has begun inside another one, which a reducer must not cause")
        defer { isOwned.store(false, ordering: .releasing) }
        return try body(&value)
    }
}
