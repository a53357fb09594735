internal import Synchronization

/// Measures the turns of pending transactions.
///
/// Only turns with a meter are measured: to ask for the processor time costs as much as a small transaction.
package final class TurnMeter: Sendable {
    private let nanoseconds = Atomic(0)

    package init() {}

    /// How much processor time the whole turns have taken together; zero before the first has ended.
    package var cost: Duration { .nanoseconds(nanoseconds.load(ordering: .relaxed)) }

    func add(_ cost: Duration) { nanoseconds.add(Int(cost / .nanoseconds(1)), ordering: .relaxed) }
}
