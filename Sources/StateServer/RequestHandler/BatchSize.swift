/// How many transactions of a bulk load reach the store at once, by what the turns of its batches have cost.
///
/// A turn has a cost of its own, such as that of finding a value which all lines expect, and a cost for each transaction.
/// Two batches of different sizes tell them apart.
struct BatchSize {
    private(set) var count: Int
    private var last: (count: Int, nanoseconds: Double)?
    /// The cost of a further transaction, from the second batch on.
    private var transactionNanoseconds: Double?
    /// The cost that the batches of all loads may have together.
    static let time = Duration.milliseconds(2)
    /// The mailbox keeps room for other clients.
    static let countMax = 1024

    init(first count: Int = 8) { self.count = count }

    /// Takes the cost of the turn of a batch.
    ///
    /// The next one is as large as costs the stated time, divided by the number of loads that are under way. Where the turn
    /// itself costs more than that, a batch may cost as much again: a smaller one would hardly be quicker, and the load
    /// would have more turns. It grows twofold to fourfold at most, because a few transactions say little.
    mutating func adapt(to cost: Duration, of measuredCount: Int, among loadsCount: Int) {
        let taken = cost / .nanoseconds(1)
        let allowed = Self.time / .nanoseconds(1) / Double(max(1, loadsCount))
        let before = last
        last = (measuredCount, taken)
        if let before, 2 * abs(measuredCount - before.count) >= max(measuredCount, before.count) {
            transactionNanoseconds = max(0, (taken - before.nanoseconds) / Double(measuredCount - before.count))
        } else if taken > 2 * allowed {
            // Two batches of nearly equal size do not separate the two costs; half of the size does.
            transactionNanoseconds = nil
        }
        let most = min(Self.countMax, (taken <= allowed ? 4 : 2) * measuredCount)
        guard let each = transactionNanoseconds else {
            count = taken <= allowed ? most : max(1, measuredCount / 2)
            return
        }
        // No transaction costs more than the whole turn.
        let further = min(each, taken / Double(measuredCount))
        let fixed = max(0, taken - further * Double(measuredCount))
        let fitting = further > 0 ? max(allowed - fixed, fixed) / further : Double(most)
        count = max(1, Int(min(fitting, Double(most))))
    }
}
