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
    enum Place {
        /// On the thread of the caller, who waits for it.
        case here
        case queue
    }

    static let longTime = Duration.milliseconds(5)
    /// For how long no loop runs a turn behind a long one.
    private static let memory = Duration.seconds(60)
    /// The most actions of a turn that a loop runs.
    private static let shortItemsMax = 1024
    /// Behind so many short turns in a row there is no bound: bursts of long transactions are at least that far apart.
    private static let shortTurnsMax = 1000
    /// A bound that is higher says nothing.
    private static let boundMax = 1024

    private(set) var countMax = Int.max
    private var shortTurnsCount = 0
    /// The end of the time in which no loop runs a turn, because one was long.
    private var longUntil: Instant?
    private var scheduledCount = 0

    var isMeasured: Bool { countMax != .max || longUntil != nil }

    /// Decides where the next turn runs.
    mutating func place(ofTurnOf itemsCount: Int, onLoop: Bool) -> Place {
        if onLoop, itemsCount <= Self.shortItemsMax, scheduledCount == 0, longUntil == nil { return .here }
        scheduledCount += 1
        return .queue
    }

    mutating func endScheduledTurn() { scheduledCount -= 1 }

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
