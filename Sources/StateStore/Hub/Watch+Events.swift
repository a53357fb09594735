/// The events of a watch, as pure functions without clock, lock or queue; the page `Watches` has their table.
extension Watch {
    mutating func published(_ version: Version, hasMore: Bool = false, at now: Instant) -> Action {
        guard state != .done, examinedVersion.map({ $0 < version }) ?? true else { return .nothing }
        guard state == .parked else {
            isBehind = true
            return .nothing
        }
        if isStream { return sends(upTo: version, hasMore: hasMore, at: now) }
        // The examined version stays: the answer after the debounce time begins behind it.
        guard let debounce else { return finishes(.answer) }
        state = .debouncing
        return .startTimer(debounce)
    }

    mutating func parks(examined version: Version?) {
        guard state != .done else { return }
        if let version { examinedVersion = max(examinedVersion ?? 0, version) }
        (isBehind, isLive, state) = (false, true, .parked)
    }

    mutating func foundNothing(upTo version: Version, at now: Instant) -> Action {
        guard tellsProgress, state == .sending, let toldVersion, toldVersion < version else {
            parks(examined: version)
            return .nothing
        }
        (examinedVersion, self.toldVersion, sentAt, isLive, chunk) = (version, version, now, true, .next)
        return .heartbeat(movedTo: version)
    }

    mutating func found(_ version: Version, hasMore: Bool, at now: Instant) -> Action {
        guard state == .sending else { return .nothing }
        // The stream has not examined what was published since the hub read the content.
        return sends(upTo: version, hasMore: hasMore || isBehind, at: now)
    }

    mutating func prepares(_ next: Chunk) -> Action {
        guard state == .sending else { return .nothing }
        (state, chunk) = (.preparing, next)
        return .prepare(next)
    }

    mutating func prepared(_ next: Chunk, _ version: Version, hasMore: Bool, at now: Instant) -> Action {
        guard state == .preparing else { return .nothing }
        guard isStream else { return finishes(.answer) }
        chunk = next
        // The stream has not examined what was published during the preparation.
        return sends(upTo: version, hasMore: hasMore || isBehind, at: now)
    }

    @discardableResult
    mutating func returns(to version: Version) -> Action {
        if state == .sending { (examinedVersion, toldVersion, isBehind, hasMore) = (version, version, true, true) }
        return .nothing
    }

    /// Takes the outcome of a waiting POST's transaction; without a commit there is no cascade to wait for.
    mutating func decided(_ outcome: Outcome) -> Action {
        guard state != .done else { return .nothing }
        self.outcome = outcome
        if case .committed = outcome { return .nothing }
        return finishes(.answer)
    }

    mutating func completed() -> Action {
        guard state != .done else { return .nothing }
        return finishes(.answer)
    }

    /// A client that has only finished sending looks like one that has left, so the watch answers in both cases.
    mutating func ends() -> Action {
        switch state {
        case .done: .nothing
        case .debouncing where !isStream: finishes(.answer)
        case .preparing, .parked, .debouncing, .sending: finishes(isStream ? .end : .answerTimedOut)
        }
    }

    mutating func timer(at now: Instant) -> Action {
        guard state == .debouncing else { return .nothing }
        guard isStream else { return finishes(.answer) }
        if mustEnd || isOver(at: now) { return finishes(.end) }
        (state, isBehind) = (.sending, false)
        return .examine
    }

    mutating func writable(at now: Instant) -> Action {
        guard state == .sending else { return .nothing }
        if mustEnd || isOver(at: now) { return finishes(.end) }
        isSlow = isLive && sentAt.map { now - $0 > Self.patience } ?? false
        if let debounce, chunk == .next, !hasMore {
            state = .debouncing
            return .startTimer(debounce)
        }
        guard isBehind else {
            parks(examined: nil)
            return .nothing
        }
        isBehind = false
        return .examine
    }

    mutating func silent(examined version: Version, at now: Instant) -> Action {
        // In every other state a chunk is being sent or prepared, or is due after the debounce time.
        guard isStream, state == .parked else { return .nothing }
        if isOver(at: now) { return finishes(.end) }
        let moved = toldVersion.map { $0 < version } ?? false ? version : nil
        if let moved { (examinedVersion, toldVersion) = (max(examinedVersion ?? 0, moved), moved) }
        (state, sentAt) = (.sending, now)
        return .heartbeat(movedTo: moved)
    }

    mutating func draining() -> Action {
        guard isStream, state == .sending else { return ends() }
        mustEnd = true
        return .nothing
    }

    private mutating func sends(upTo version: Version, hasMore: Bool, at now: Instant) -> Action {
        (state, examinedVersion, toldVersion, sentAt) = (.sending, version, version, now)
        (isBehind, self.hasMore) = (hasMore, hasMore)
        if !hasMore { isLive = true }
        // Only the receiver knows where a snapshot ends.
        defer { chunk = chunk == .snapshot(isLast: false) ? chunk : .next }
        return .send(chunk)
    }

    private mutating func finishes(_ action: Action) -> Action {
        state = .done
        return action
    }

    private func isOver(at now: Instant) -> Bool { endsAt.map { $0 <= now } ?? false }

    mutating func waitsForOther(than encoded: Encoded?) {
        guard case .value(let selection, _) = subject else { return }
        subject = .value(
            selection, until: encoded.map { .otherThan(.tags([$0.tag])) } ?? .present(otherThan: .tags([])))
    }

    var query: ChangesQuery? {
        if case .changes(let query) = subject { query.after(examinedVersion ?? 0) } else { nil }
    }
}
