internal import Synchronization

/// Measures the turn of a pending transaction.
///
/// Only turns with a meter are measured: to ask for the processor time costs as much as a small transaction.
package final class TurnMeter: Sendable {
    private let nanoseconds = Atomic(0)

    package init() {}

    /// How much processor time the whole turn has taken; zero before it has ended.
    package var cost: Duration { .nanoseconds(nanoseconds.load(ordering: .relaxed)) }

    func set(_ cost: Duration) { nanoseconds.store(Int(cost / .nanoseconds(1)), ordering: .relaxed) }
}
