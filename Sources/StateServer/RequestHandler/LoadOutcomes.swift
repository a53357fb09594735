internal import MicroHTTP
internal import StateStore

/// The outcomes of a bulk load so far, with a bound on the values in them, which count in the memory budget.
///
/// The new values, the patches, and the expected and actual values of preconditions are values. Behind the bound, or where
/// the budget has no room, a line is answered without them: what it says of its commit comes in any case.
struct LoadOutcomes: Sendable {
    /// The most bytes of values in an answer to many lines.
    static let valuesBytesMax = 16 << 20
    /// About how many bytes the outcome of a line and its answer take without values.
    private static let lineBytes = 400

    private(set) var all: [Outcome] = []
    /// Whether further lines are answered without values.
    private(set) var isFull = false
    private(set) var hasValues = false
    private let memory: MemoryBudget
    private var bytesLeft: Int
    private var reservedBytes: Int

    /// Makes room for the outcomes of some lines, or returns nil if the budget has none.
    init?(of linesCount: Int, valuesBytesMax: Int = Self.valuesBytesMax, in memory: MemoryBudget) {
        reservedBytes = linesCount * Self.lineBytes
        guard memory.reserve(reservedBytes) else { return nil }
        self.memory = memory
        bytesLeft = valuesBytesMax
    }

    mutating func append(_ outcome: Outcome) {
        let bytes = outcome.valuesBytesCount
        guard bytes > 0 else { return all.append(outcome) }
        // The answer has them once more.
        guard !isFull, bytes <= bytesLeft, memory.reserve(2 * bytes) else {
            isFull = true
            return all.append(outcome.withoutValues)
        }
        reservedBytes += 2 * bytes
        bytesLeft -= bytes
        hasValues = true
        all.append(outcome)
    }

    mutating func append(_ outcome: Outcome, count: Int) { all += repeatElement(outcome, count: count) }

    /// Ends the count, when the answer is on its way.
    func release() { memory.release(reservedBytes) }
}
