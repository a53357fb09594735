/// What can happen to a watch, and what has to be done then.
///
/// Pure: no clock, no lock, no queue. The table of states and events stands on the page `Watches`.
extension Watch {
    /// News has come for a parked watch; one in another state notes that it is behind.
    ///
    /// - Parameters:
    ///   - version: up to which the news tells everything. What is not newer than the watch's position is no news for it.
    ///   - hasMore: whether the store has more than the news holds.
    mutating func published(_ version: Version, hasMore: Bool = false, at now: Instant) -> Action {
        guard state != .done, position.map({ $0 < version }) ?? true else { return .nothing }
        guard state == .parked else {
            isBehind = true
            return .nothing
        }
        if isStream { return sends(upTo: version, hasMore: hasMore, at: now) }
        // The position stays: what is answered after the burst begins there.
        guard let debounce else { return finishes(.answer) }
        state = .debouncing
        return .startTimer(debounce)
    }

    /// A look has found nothing newer: the watch waits.
    ///
    /// - Parameter version: up to which everything was looked at; nil where the look is still to come.
    mutating func parks(lookedAt version: Version?) {
        guard state != .done else { return }
        if let version { position = max(position ?? 0, version) }
        (isBehind, isLive, state) = (false, true, .parked)
    }

    /// A look has found something newer for a stream.
    mutating func found(_ version: Version, hasMore: Bool, at now: Instant) -> Action {
        guard state == .sending else { return .nothing }
        // What has been published since the look is still to be looked at.
        return sends(upTo: version, hasMore: hasMore || isBehind, at: now)
    }

    /// What a stream needs next is being read elsewhere.
    mutating func prepares(_ next: Chunk) -> Action {
        guard state == .sending else { return .nothing }
        (state, chunk) = (.preparing, next)
        return .prepare(next)
    }

    /// What was being read elsewhere is there.
    mutating func prepared(_ next: Chunk, _ version: Version, hasMore: Bool, at now: Instant) -> Action {
        guard state == .preparing else { return .nothing }
        guard isStream else { return finishes(.answer) }
        chunk = next
        // What has been published meanwhile has not been looked at.
        return sends(upTo: version, hasMore: hasMore || isBehind, at: now)
    }

    /// The action of a POST that waits has been decided; without a commit there is nothing to wait for.
    mutating func decided(_ outcome: Outcome) -> Action {
        guard state != .done else { return .nothing }
        self.outcome = outcome
        if case .committed = outcome { return .nothing }
        return finishes(.answer)
    }

    /// The cascade of a POST that waits is complete.
    mutating func completed() -> Action {
        guard state != .done else { return .nothing }
        return finishes(.answer)
    }

    /// The time of a wait is up, or its client has closed its side.
    ///
    /// A client that has only finished sending cannot be told from one that has left: it is answered all the same. A
    /// debounced answer is given with what there is now.
    mutating func ends() -> Action {
        switch state {
        case .done: .nothing
        case .debouncing where !isStream: finishes(.answer)
        case .preparing, .parked, .debouncing, .sending: finishes(isStream ? .end : .answerTimedOut)
        }
    }

    /// The debounce timer has run out.
    mutating func timer(at now: Instant) -> Action {
        guard state == .debouncing else { return .nothing }
        guard isStream else { return finishes(.answer) }
        if mustEnd || isOver(at: now) { return finishes(.end) }
        (state, isBehind) = (.sending, false)
        return .look
    }

    /// Everything that a stream was given has been written.
    mutating func writable(at now: Instant) -> Action {
        guard state == .sending else { return .nothing }
        if mustEnd || isOver(at: now) { return finishes(.end) }
        isSlow = isLive && sentAt.map { now - $0 > Self.patience } ?? false
        if let debounce, chunk == .next, !hasMore {
            state = .debouncing
            return .startTimer(debounce)
        }
        guard isBehind else {
            parks(lookedAt: nil)
            return .nothing
        }
        isBehind = false
        return .look
    }

    /// A stream has sent nothing for a while.
    ///
    /// - Parameter version: up to which everything was looked at.
    mutating func silent(lookedAt version: Version, at now: Instant) -> Action {
        // In every other state something is on its way to the client already.
        guard isStream, state == .parked else { return .nothing }
        if isOver(at: now) { return finishes(.end) }
        let moved = toldVersion.map { $0 < version } ?? false ? version : nil
        if let moved { (position, toldVersion) = (max(position ?? 0, moved), moved) }
        (state, sentAt) = (.sending, now)
        return .heartbeat(movedTo: moved)
    }

    /// The server is stopping: waits are answered as if their time were up, streams end behind what is on its way.
    mutating func draining() -> Action {
        switch state {
        case .done: return .nothing
        case .sending where isStream:
            mustEnd = true
            return .nothing
        case .debouncing where !isStream: return finishes(.answer)
        case .preparing, .parked, .debouncing, .sending: return finishes(isStream ? .end : .answerTimedOut)
        }
    }

    private mutating func sends(upTo version: Version, hasMore: Bool, at now: Instant) -> Action {
        (state, position, toldVersion, sentAt) = (.sending, version, version, now)
        (isBehind, self.hasMore) = (hasMore, hasMore)
        if !hasMore { isLive = true }
        defer { chunk = .next }
        return .send(chunk)
    }

    private mutating func finishes(_ action: Action) -> Action {
        state = .done
        return action
    }

    private func isOver(at now: Instant) -> Bool { endsAt.map { $0 <= now } ?? false }
}

extension Watch {
    /// Whether the watch waits for one value, which may stand for one turn only.
    var waitsForOneValue: Bool {
        if case .value(_, .equalTo) = subject { true } else { false }
    }

    /// A stream has been sent a value: it waits for another one.
    mutating func waitsForOther(than encoded: Encoded?) {
        guard case .value(let selection, _) = subject else { return }
        subject = .value(selection, until: encoded.map { .otherThan(.tags([$0.tag])) } ?? .present)
    }
}

extension Watch {
    /// Where a stream looks next.
    enum Look {
        case value(Selection)
        case changes(HubStorage.Follower)
        /// Nowhere: it has to begin again.
        case reset(ResetReason)
    }

    /// Where a stream looks next; nil where it does not look.
    var look: Look? {
        guard isStream, state == .sending else { return nil }
        switch (subject, chunk) {
        case (.value(let selection, _), _): return .value(selection)
        case (.changes, .reset(let reason)): return .reset(reason)
        case (.changes, _): return follower.map { .changes($0) }
        case (.version, _), (.cascade, _): return nil
        }
    }

    /// What it has in common with others that follow the same from the same position; nil where it follows no commits.
    var follower: HubStorage.Follower? {
        guard case .changes(let filter, let limit, let weightMax) = subject else { return nil }
        let key = HubStorage.FollowerKey(filter: filter, limit: limit, weightMax: weightMax)
        return HubStorage.Follower(key: key, position: position ?? 0, isSlow: isSlow)
    }

    /// Whether a value is news for a stream: the first value always is, where there is one.
    func isMet(by reading: Reading) -> Bool {
        guard case .value(_, let condition) = subject else { return false }
        return condition.isMet(by: reading.encoded)
    }
}
