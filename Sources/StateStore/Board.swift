internal import StateJSON
internal import Synchronization

/// What the store has published, and who waits for what comes next.
///
/// Readers and waiters are served here, on whatever thread they come, without waiting for a turn. Looking and parking are
/// one step: no commit slips between. A ``WaiterToken`` stands for a waiter; the board hands tokens back and
/// does not look inside.
package final class Board: Sendable {
    private let standing: Mutex<Standing>
    private let caps: WaiterCaps
    /// Whether commits older than those in memory can be read elsewhere.
    private let hasJournal: Bool

    /// Opens a board on a snapshot.
    package init(
        _ head: Snapshot, catalogue: Catalogue, limits: StoreLimits = StoreLimits(),
        caps: WaiterCaps = WaiterCaps(waitersMax: 20_000, waitersPerClientMax: 20_000), journalOldest: Version? = nil
    ) {
        self.caps = caps
        hasJournal = journalOldest != nil
        standing = Mutex(
            Standing(
                head: head, index: SelectionIndex(viewReads: catalogue.viewReads),
                history: History(
                    beginningWith: head, countMax: limits.historyCommitsMax, weightMax: limits.historyBytesMax),
                oldest: journalOldest ?? head.cursor.version))
    }

    /// The head and the oldest position that can be followed from, of one instant.
    package var position: (head: Cursor, oldest: Version) { standing.withLock { ($0.head.cursor, $0.oldest) } }

    /// The newest snapshot.
    package var head: Snapshot { standing.withLock { $0.head } }

    /// The oldest position that can be followed from.
    package var oldest: Version { standing.withLock { $0.oldest } }

    /// The oldest version whose state memory can tell.
    package var oldestState: Version { standing.withLock { $0.history.oldestState } }

    /// How many wait.
    package var waitersCount: Int { standing.withLock { $0.spots.count } }

    /// The value of a selection now.
    ///
    /// Asked again before it changes, it costs a look into a dictionary.
    ///
    /// - Throws: `EncodingError` when a view's value cannot be encoded.
    package func read(_ selection: Selection) throws -> Reading {
        let (head, known) = standing.withLock { ($0.head, $0.index.encoded(selection)) }
        if let known { return Reading(cursor: head.cursor, encoded: known) }
        return Reading(
            cursor: head.cursor, encoded: keep(try head.selected(selection, countMax: .max), selection, head))
    }

    /// The value of a selection, if it is known or soon made; nil where ``read(_:)`` takes so long that a thread which
    /// serves others should not do it.
    package func readQuickly(_ selection: Selection) throws -> Reading? {
        let (head, known) = standing.withLock { ($0.head, $0.index.encoded(selection)) }
        if let known { return Reading(cursor: head.cursor, encoded: known) }
        let selected = try head.selected(selection, countMax: 1000)
        if case .tooMuch = selected { return nil }
        return Reading(cursor: head.cursor, encoded: keep(selected, selection, head))
    }

    /// Notes what had to be put together; what the state keeps anyway would only push that out.
    private func keep(_ selected: Selected, _ selection: Selection, _ head: Snapshot) -> Encoded? {
        guard let encoded = selected.text.map(Encoded.init) else { return nil }
        if case .made = selected {
            standing.withLock {
                guard $0.head.cursor == head.cursor else { return }
                $0.index.note(encoded, for: selection)
            }
        }
        return encoded
    }

    /// Counts a waiter that will wait again and again, until it is dismissed; its places on the board come and go.
    package func enlist(_ token: WaiterToken, client: String) -> Parking {
        standing.withLock { $0.enlist(token, client, caps) }
    }

    /// Takes out a waiter that was enlisted.
    package func dismiss(_ token: WaiterToken) {
        standing.withLock { $0.dismiss(token) }
    }

    /// Waits until a selection is as the condition says, unless it is already.
    package func park(
        _ token: WaiterToken, client: String, at selection: Selection, until condition: WaitCondition
    ) throws -> Parking {
        let seen = try read(selection)
        guard !condition.isMet(by: seen.encoded) else { return .ready }
        return try standing.withLock { standing in
            // A commit may have come since the look: only then is the value encoded under the lock.
            if standing.head.cursor != seen.cursor {
                let now = try standing.index.encoded(selection) ?? standing.head.encoded(selection)
                guard !condition.isMet(by: now) else { return .ready }
            }
            return standing.admit(token, client, .selection(selection), caps) {
                $0.index.park(token, at: selection, until: condition)
            }
        }
    }

    /// Waits until the head has reached a version, unless it has already.
    package func park(_ token: WaiterToken, client: String, until version: Version) -> Parking {
        standing.withLock { standing in
            guard standing.head.cursor.version < version else { return .ready }
            return standing.admit(token, client, .version(version), caps) {
                $0.byVersion[version, default: []].insert(token)
            }
        }
    }

    /// The commits after a position; where there are none and a token is given, it waits for the first.
    package func follow(_ query: ChangesQuery, as token: WaiterToken? = nil, client: String = "") -> Following {
        standing.withLock { standing in
            let found = standing.following(query)
            guard case .nothing(let head, _) = found else { return found }
            guard let token else { return .nothing(head: head, .ready) }
            var query = query
            // Everything up to the head has been looked at: followers that stand anywhere before it wait together.
            query.since = head.version
            let parking = standing.admit(token, client, .changes(query), caps) {
                $0.followers[query, default: []].insert(token)
            }
            return .nothing(head: head, parking)
        }
    }

    /// The commits after a position; where there are none, these waiters wait for the first.
    ///
    /// - Parameter tokens: waiters that are enlisted; one that has been dismissed meanwhile is left out.
    package func follow(_ query: ChangesQuery, asEnlisted tokens: [WaiterToken]) -> Following {
        standing.withLock { standing in
            let found = standing.following(query)
            guard case .nothing(let head, _) = found else { return found }
            var query = query
            query.since = head.version
            for token in tokens { standing.parkEnlisted(token, query) }
            return .nothing(head: head, .parked)
        }
    }

    /// Takes a waiter out.
    ///
    /// - Returns: the token as it was parked and the head at that moment, or nil when the waiter was not here: somebody
    ///   is answering it already.
    package func leave(_ token: WaiterToken) -> (token: WaiterToken, head: Cursor)? {
        standing.withLock { standing in standing.leave(token).map { ($0, standing.head.cursor) } }
    }

    /// Takes everybody out, with the head at that moment.
    package func leaveAll() -> (tokens: [WaiterToken], head: Cursor) {
        standing.withLock { standing in
            // Those who are enlisted are told by whoever keeps them.
            let tokens = standing.spots.filter { !$0.value.isEnlisted }.map(\.key)
            for token in tokens { _ = standing.leave(token) }
            return (tokens, standing.head.cursor)
        }
    }

    /// The nearest state at or before a version and the commits from there to it, or nil where memory does not reach.
    package func path(to version: Version) -> (from: Snapshot, commits: [Commit])? {
        standing.withLock { $0.history.path(to: version) }
    }

    /// The commit that made a version or that has an ID, if it is in memory.
    package func commit(version: Version) -> Commit? { standing.withLock { $0.history.commit(version) } }
    /// The newest commit with a client's own ID, if it is in memory.
    package func commit(id: String) -> Commit? { standing.withLock { $0.history.commit(id: id) } }

    /// Notes that the journal has dropped what came before a version.
    package func journalBegins(at version: Version) {
        standing.withLock { $0.oldest = max($0.oldest, version) }
    }

    /// Makes a turn's result the present.
    ///
    /// Called by one publisher at a time. Each selection that may have changed and is waited for is encoded once, before
    /// the lock is taken.
    ///
    /// - Returns: whom to answer, in groups.
    package func publish(_ head: Snapshot, _ commits: [Commit]) -> [Wake] {
        var touched: Set<JSONPointer> = []
        var last: JSONPointer?
        // The commits of a turn often change the same: comparing costs less than hashing.
        for pointer in commits.lazy.flatMap(\.touched) where pointer != last {
            touched.insert(pointer)
            last = pointer
        }
        let awaited = standing.withLock { standing in
            standing.index.selections(touchedBy: touched).filter { standing.index.isAwaited($0) }
        }
        var values: [Selection: Encoded?] = [:]
        // A view that cannot be encoded is gone for those who wait for it; a later GET tells them why.
        for selection in awaited { values[selection] = .some(try? head.encoded(selection)) }

        return standing.withLock { standing in
            standing.head = head
            var wakes: [Wake] = []
            for selection in standing.index.selections(touchedBy: touched) {
                guard standing.index.isAwaited(selection) else {
                    standing.index.forget(selection)
                    continue
                }
                let value = values[selection] ?? (try? head.encoded(selection))
                let woken = standing.index.settle(selection, value)
                guard !woken.isEmpty else { continue }
                for token in woken { standing.release(token) }
                wakes.append(Wake(.selection(Reading(cursor: head.cursor, encoded: value)), woken))
            }
            for commit in commits { standing.history.append(commit) }
            standing.history.note(head)
            if !hasJournal { standing.oldest = standing.history.base }
            standing.wakeFollowers(commits, into: &wakes)
            for (version, tokens) in standing.byVersion where version <= head.cursor.version {
                standing.byVersion[version] = nil
                for token in tokens { standing.release(token) }
                wakes.append(Wake(.version, tokens))
            }
            return wakes
        }
    }
}
