internal import HTTPMessages
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// A fork that is being made, a slice of time after the other, so that those of other clients are made in turn.
///
/// One thread after the other uses it.
final class ForkDraft: Sendable {
    private struct Progress {
        var advance: Fork.Advance?
        var time = Duration.zero
    }

    /// How long a client keeps the thread that makes forks.
    private static let slice = Duration.milliseconds(20)

    let from: Cursor
    let to: Cursor
    let place: Forks.Place
    private let timeMax: Duration
    private let begin: @Sendable () throws -> Fork.Advance
    private let progress = Mutex(Progress())

    init(
        from: Cursor, to: Cursor, place: Forks.Place, timeMax: Duration,
        begin: @escaping @Sendable () throws -> Fork.Advance
    ) {
        (self.from, self.to, self.place, self.timeMax, self.begin) = (from, to, place, timeMax, begin)
    }

    /// Runs actions for a slice of time.
    func advance(_ now: () -> Instant, isOver: () -> Bool) throws -> Fork? {
        var progress = progress.withLock { $0 }
        guard !isOver() else { return nil }
        let begun = now()
        let advance = try progress.advance ?? begin()
        let fork = try advance { now() - begun < Self.slice && !isOver() }
        progress.time += now() - begun
        guard fork != nil || progress.time <= timeMax else { throw Problem.forkTakesLong(timeMax) }
        progress.advance = advance
        self.progress.withLock { [progress] in $0 = progress }
        return fork
    }
}
