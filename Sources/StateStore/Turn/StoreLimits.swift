/// The limits of a store.
public struct StoreLimits: Sendable {
    /// How many transactions may wait for a turn or its landing; the store refuses more at once.
    public var mailboxMax: Int
    /// How many idempotency keys the store keeps; above it, the store refuses a transaction with a new key.
    package var idempotencyKeysMax = 1_000_000
    package var idempotencyLifetime = Duration.seconds(86_400)
    package var historyCommitsMax = 100_000
    package var historyBytesMax = 64 << 20
    /// How many commits deep a cascade may be; the store refuses a deeper follow-up.
    public var cascadeDepthMax = 100_000
    /// How many actions a cascade may dispatch in all; the store refuses more.
    public var cascadeActionsMax = 1_000_000
    /// How many actions may be scheduled; the store rejects what schedules more.
    public var scheduleMax = 100_000
    package var scheduleBytesMax = Int.max
    /// The processor time of one transaction's actions; the store looks behind each 16, so up to 16 have no limit.
    package var transactionTime = Duration.milliseconds(250)
    /// The most bytes of a commit, which are those of its actions and of its patch; the store rejects a larger one.
    package var commitBytesMax = Int.max
    /// The most bytes of the state as compact JSON; above it the store commits only what makes the state smaller.
    package var stateBytesMax = Int.max
    /// The most bytes of memory of a state that is one tree; above it the store commits only what makes the state smaller.
    package var stateMemoryBytesMax = Int.max
    /// How many effects may run at once; the store does not start more, and reports each.
    public var effectsMax = 10_000
}

extension StoreLimits {
    /// Makes limits; they are those of the shipped configuration.
    public init() { self.init(mailboxMax: 65_536) }
}
