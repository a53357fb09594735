/// The way to the end: drain, cut, stop.
///
/// Draining gives waiting exchanges their `stopping` answer at once and lets work finish. When the grace time is over,
/// work is answered in the same way, and replies still on their way get a moment before they are cut.
extension EventLoop {
    /// Where the loop stands between its start and its end.
    enum Stage {
        case serving
        case draining(until: ContinuousClock.Instant)
        case cutting(until: ContinuousClock.Instant)

        /// Whether answers close their connections.
        var isStopping: Bool {
            switch self {
            case .serving: false
            case .draining, .cutting: true
            }
        }

        /// When to look again even if nothing happens.
        var deadline: ContinuousClock.Instant? {
            switch self {
            case .serving: nil
            case .draining(let until), .cutting(let until): until
            }
        }

        /// Whether an exchange of this kind is ended as soon as it begins.
        func refuses(_ patience: ClientConnection.Patience) -> Bool {
            switch self {
            case .serving: false
            case .draining: patience == .waiting
            case .cutting: true
            }
        }
    }

    /// Begins to stop; asked again, the earlier end holds.
    func beginDraining(grace: Duration) {
        let until = ContinuousClock.now + grace
        switch stage {
        case .serving:
            stage = .draining(until: until)
            expireAll { $0 == .waiting }
        case .draining(let present):
            stage = .draining(until: min(present, until))
        case .cutting:
            break
        }
    }

    /// Moves on from one stage to the next; true when nothing is in flight any more, or nothing worth waiting for.
    func hasStopped() -> Bool {
        switch stage {
        case .serving:
            return false
        case .draining(let until):
            guard inFlightCount > 0 else { return true }
            guard until <= .now else { return false }
            stage = .cutting(until: .now + .milliseconds(250))
            expireAll { _ in true }
            return false
        case .cutting(let until):
            // An exchange still pending was claimed by an answer that is about to be in the inbox.
            return pending.isEmpty && (inFlightCount == 0 || until <= .now)
        }
    }

    private func expireAll(where isMeant: (ClientConnection.Patience) -> Bool) {
        for connection in Array(pending.values) {
            switch connection.phase {
            case .held(_, let patience, _), .suspended(_, let patience, _):
                if isMeant(patience) { expire(connection, .stopping) }
            case .idle, .lineReceived, .reading, .draining, .answered, .queued:
                preconditionFailure("only held and suspended connections are pending")
            }
        }
    }
}
