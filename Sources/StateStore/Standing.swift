internal import StateJSON

/// What is published at an instant, and who waits for what comes next.
///
/// Pure: ``Board`` guards it.
struct Standing: Sendable {
    var head: Snapshot
    var index: SelectionIndex
    var history: History
    /// The oldest position that can be followed from, memory and journal together.
    var oldest: Version
    var followers: [ChangesQuery: Set<WaiterToken>] = [:]
    var spots: [WaiterToken: Place] = [:]
    var byClient: [String: Int] = [:]
    var byVersion: [Version: Set<WaiterToken>] = [:]

    /// A waiter that counts.
    struct Place {
        /// Nil where it is enlisted and waits for nothing at the moment.
        var spot: Spot?
        let client: String
        var isEnlisted = false
    }

    /// What a waiter waits for.
    enum Spot {
        case selection(Selection)
        case changes(ChangesQuery)
        case version(Version)
    }
}

extension Standing {
    /// Takes a waiter in, unless there are too many.
    mutating func admit(
        _ token: WaiterToken, _ client: String, _ spot: Spot, _ caps: WaiterCaps, _ park: (inout Self) -> Void
    ) -> Parking {
        if spots[token]?.isEnlisted == true {
            spots[token]?.spot = spot
        } else if let share = count(token, Place(spot: spot, client: client), caps) {
            return .refused(share)
        }
        park(&self)
        return .parked
    }

    /// Counts a waiter that comes back.
    mutating func enlist(_ token: WaiterToken, _ client: String, _ caps: WaiterCaps) -> Parking {
        count(token, Place(spot: nil, client: client, isEnlisted: true), caps).map(Parking.refused) ?? .parked
    }

    /// Has an enlisted waiter follow; one that is not enlisted any more is left out.
    mutating func parkEnlisted(_ token: WaiterToken, _ query: ChangesQuery) {
        guard let position = spots.index(forKey: token), spots[position].value.isEnlisted else { return }
        spots.values[position].spot = .changes(query)
        // As it was enlisted: the equal one that was named may know less.
        followers[query, default: []].insert(spots[position].key)
    }

    private mutating func count(_ token: WaiterToken, _ place: Place, _ caps: WaiterCaps) -> Parking.Share? {
        guard spots.count < caps.waitersMax else { return .all }
        guard byClient[place.client, default: 0] < caps.waitersPerClientMax else { return .client }
        spots[token] = place
        byClient[place.client, default: 0] += 1
        return nil
    }

    /// Strikes a waiter off the lists that count; one that is enlisted only waits no more.
    mutating func release(_ token: WaiterToken) {
        if spots[token]?.isEnlisted == true { spots[token]?.spot = nil } else { strike(token) }
    }

    private mutating func strike(_ token: WaiterToken) {
        guard let client = spots.removeValue(forKey: token)?.client else { return }
        if let count = byClient[client], count > 1 { byClient[client] = count - 1 } else { byClient[client] = nil }
    }

    /// Takes out a waiter that was enlisted.
    mutating func dismiss(_ token: WaiterToken) {
        _ = leave(token)
        strike(token)
    }

    /// Takes a waiter out.
    ///
    /// - Returns: the token as it was parked, which may know more than the equal one that was asked for; nil where it
    ///   was not parked.
    mutating func leave(_ token: WaiterToken) -> WaiterToken? {
        guard let position = spots.index(forKey: token), let spot = spots[position].value.spot else { return nil }
        let parked = spots[position].key
        switch spot {
        case .selection(let selection): index.remove(token, at: selection)
        case .changes(let query):
            followers[query]?.remove(token)
            if followers[query]?.isEmpty == true { followers[query] = nil }
        case .version(let version):
            byVersion[version]?.remove(token)
            if byVersion[version]?.isEmpty == true { byVersion[version] = nil }
        }
        release(token)
        return parked
    }

    /// What there is after a position now.
    func following(_ query: ChangesQuery) -> Following {
        let head = head.cursor
        guard query.since <= head.version else { return .aboveHead(head: head) }
        guard query.since >= oldest else { return .expired(oldest: oldest, head: head) }
        guard let commits = history.commits(after: query.since) else { return .inJournal(head: head) }
        let page = ChangesPage(query, from: commits, head: head)
        return page.commits.isEmpty && !page.isMore ? .nothing(head: head, .ready) : .page(page)
    }

    mutating func wakeFollowers(_ commits: [Commit], into wakes: inout [Wake]) {
        for (query, tokens) in followers where commits.contains(where: query.filter.passes) {
            followers[query] = nil
            for token in tokens { release(token) }
            // What came before these commits was looked at when it came.
            var query = query
            query.since = (commits.first?.version ?? 1) - 1
            let page = ChangesPage(query, from: commits, head: head.cursor)
            wakes.append(Wake(.changes(query, page), tokens))
        }
    }
}
