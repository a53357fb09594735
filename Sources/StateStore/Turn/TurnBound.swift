/// How many transactions the next turn may have, by what the turns before it have cost.
///
/// A turn that was long bounds the turns behind it, so that the transactions of one client cannot make those of others wait
/// for long again and again. A turn has one transaction at least, and a transaction cannot be divided.
struct TurnBound: Sendable {
    /// The time that a turn may take before it bounds the next ones.
    static let time = Duration.milliseconds(5)
    /// Behind so many short turns in a row there is no bound: bursts of long transactions are at least that far apart.
    private static let shortTurnsMax = 1000
    /// A bound that is higher says nothing.
    private static let boundMax = 1024

    /// The most transactions of the next turn.
    private(set) var count = Int.max
    private var shortTurnsCount = 0

    /// Whether there is a bound.
    var isBounded: Bool { count != .max }

    /// Whether the next turn may well be long, because one of the last turns was.
    var expectsLongTurn: Bool { isBounded && shortTurnsCount < 16 }

    /// Takes how long a turn has taken.
    ///
    /// - Parameter turnCount: how many transactions the turn had.
    mutating func adapt(to duration: Duration, of turnCount: Int) {
        guard duration <= Self.time else {
            count = max(1, Int(Double(turnCount) * (Self.time / duration)))
            shortTurnsCount = 0
            return
        }
        guard isBounded else { return }
        shortTurnsCount += 1
        // A turn with fewer transactions says nothing about one with more.
        if turnCount >= count { count *= 2 }
        if count > Self.boundMax || shortTurnsCount >= Self.shortTurnsMax { count = .max }
    }
}
