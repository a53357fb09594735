internal import Synchronization

/// The work that the actions of one transaction may do, counted the same on every machine.
///
/// A domain whose clients decide how much a reducer does spends from the meter before it works. A replay has no meter: what
/// is recorded is not refused.
package final class WorkMeter: Sendable {
    /// The places that one transaction may look at, remove, or change: some 30 ms of a processor.
    package static let placesMax = 20_000
    /// The bytes of JSON that one transaction may move, copy or compare.
    package static let bytesMax = 4 << 20

    private let places = Atomic(0)
    private let bytes = Atomic(0)

    init() {}

    /// Counts work; returns false where the transaction then would have done more than it may.
    package func spend(places: Int = 1, bytes: Int = 0) -> Bool {
        self.places.add(places, ordering: .relaxed).newValue <= Self.placesMax
            && self.bytes.add(bytes, ordering: .relaxed).newValue <= Self.bytesMax
    }

    func reset() {
        places.store(0, ordering: .relaxed)
        bytes.store(0, ordering: .relaxed)
    }
}
