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

        /// Whether a wait or a stream is ended as soon as it begins.
        var refusesWaiting: Bool { isStopping }

        /// Whether work is ended as soon as it begins.
        var refusesWork: Bool { if case .cutting = self { true } else { false } }
    }

    /// Begins to stop; asked again, the earlier end holds.
    func beginDraining(grace: Duration) {
        let until = ContinuousClock.now + grace
        switch stage {
        case .serving:
            stage = .draining(until: until)
            expireParked()
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
            guard inFlightCount > 0 || !parked.isEmpty else { return true }
            guard until <= .now else { return false }
            stage = .cutting(until: .now + .milliseconds(250))
            for connection in Array(pending.values) { expire(connection, .stopping) }
            return false
        case .cutting(let until):
            // An exchange still pending was claimed by an answer that is about to be in the mailbox.
            return pending.isEmpty && ((inFlightCount == 0 && parked.isEmpty) || until <= .now)
        }
    }

    private func expireParked() {
        for connection in Array(parked.values) {
            switch connection.phase {
            case .waiting(let exchange), .streaming(let exchange, _): expire(connection, exchange, .stopping)
            case .keepAliveIdle: close(connection)
            case .answering, .closed: break
            }
        }
    }
}
