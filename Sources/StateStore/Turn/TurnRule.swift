/// The rule of the turns: which thread runs the next one, and how many transactions it has, by what the turns before it have
/// cost.
///
/// A loop that has received actions can run their turn on its own thread, which spares two switches of threads; but all
/// its clients wait meanwhile. So it runs only what will be short as far as anybody knows: of few actions, while no turn is
/// scheduled on the queue, and not within a minute of a long turn. A reducer that takes long now and then is on a loop's
/// thread once a minute at most.
///
/// A turn that was long also bounds the turns behind it, so that the transactions of one client cannot make those of others
/// wait for long again and again. A turn has one transaction at least, and a transaction cannot be divided.
struct TurnRule: Sendable {
    /// Where a turn runs.
    enum Place {
        /// On the thread of the caller, who waits for it.
        case here
        /// On the store's queue, scheduled by the caller.
        case queue
    }

    /// A turn that takes longer is long.
    static let longTime = Duration.milliseconds(5)
    /// For how long no loop runs a turn behind a long one.
    private static let memory = Duration.seconds(60)
    /// The most actions of a turn that a loop runs.
    private static let shortItemsMax = 1024
    /// Behind so many short turns in a row there is no bound: bursts of long transactions are at least that far apart.
    private static let shortTurnsMax = 1000
    /// A bound that is higher says nothing.
    private static let boundMax = 1024

    /// The most transactions of the next turn.
    private(set) var countMax = Int.max
    private var shortTurnsCount = 0
    /// Until when no loop runs a turn; nil where none was long of late.
    private var longUntil: Instant?
    /// How many turns are scheduled on the queue, or run there.
    private var scheduledCount = 0

    /// Whether the length of the next turn has to be noted.
    var isMeasured: Bool { countMax != .max || longUntil != nil }

    /// Decides where the next turn runs.
    ///
    /// - Parameters:
    ///   - itemsCount: how many actions wait.
    ///   - onLoop: whether a loop asks, which can run it.
    mutating func place(ofTurnOf itemsCount: Int, onLoop: Bool) -> Place {
        if onLoop, itemsCount <= Self.shortItemsMax, scheduledCount == 0, longUntil == nil { return .here }
        scheduledCount += 1
        return .queue
    }

    /// Notes that a turn on the queue is over.
    mutating func endScheduledTurn() { scheduledCount -= 1 }

    /// Takes how long a turn has taken.
    ///
    /// - Parameter count: how many transactions the turn had.
    mutating func adapt(to duration: Duration, of count: Int, endedAt now: Instant) {
        guard duration <= Self.longTime else {
            countMax = max(1, Int(Double(count) * (Self.longTime / duration)))
            shortTurnsCount = 0
            longUntil = now + Self.memory
            return
        }
        if let longUntil, longUntil <= now { self.longUntil = nil }
        guard countMax != .max else { return }
        shortTurnsCount += 1
        // A turn with fewer transactions says nothing about one with more.
        if count >= countMax { countMax *= 2 }
        if countMax > Self.boundMax || shortTurnsCount >= Self.shortTurnsMax { countMax = .max }
    }
}
