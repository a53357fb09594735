internal import StateJSON

/// What is published at an instant, and who waits for what comes next.
///
/// Pure: ``Board`` guards it.
struct Standing<Token: Hashable & Sendable>: Sendable {
    var head: Snapshot
    var index: SelectionIndex<Token>
    var history: History
    /// The oldest position that can be followed from, memory and journal together.
    var oldest: Version
    var followers: [ChangesQuery: Set<Token>] = [:]
    var spots: [Token: (spot: Spot, client: String)] = [:]
    var byClient: [String: Int] = [:]
    var byVersion: [Version: Set<Token>] = [:]

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
        _ token: Token, _ client: String, _ spot: Spot, _ caps: WaiterCaps, _ park: (inout Self) -> Void
    ) -> Parking {
        guard spots.count < caps.waitersMax else { return .refused(.all) }
        guard byClient[client, default: 0] < caps.waitersPerClientMax else { return .refused(.client) }
        spots[token] = (spot, client)
        byClient[client, default: 0] += 1
        park(&self)
        return .parked
    }

    /// Strikes a waiter off the lists that count.
    mutating func release(_ token: Token) {
        guard let (_, client) = spots.removeValue(forKey: token) else { return }
        if let count = byClient[client], count > 1 { byClient[client] = count - 1 } else { byClient[client] = nil }
    }

    /// Takes a waiter out.
    ///
    /// - Returns: the token as it was parked, which may know more than the equal one that was asked for.
    mutating func leave(_ token: Token) -> Token? {
        guard let place = spots.index(forKey: token) else { return nil }
        let (parked, (spot, _)) = spots[place]
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

    mutating func wakeFollowers(_ commits: [Commit], into wakes: inout [Wake<Token>]) {
        for (query, tokens) in followers where commits.contains(where: query.filter.passes) {
            followers[query] = nil
            for token in tokens { release(token) }
            // What came before these commits was looked at when it came.
            var query = query
            query.since = (commits.first?.version ?? 1) - 1
            let page = ChangesPage(query, from: commits, head: head.cursor)
            wakes.append(.changes(query, page, Array(tokens)))
        }
    }
}
