import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

/// A follower as a client implements it: it queries from its last version and keeps the commits that it gets.
private struct Follower {
    var since: Version = 0
    let limit: Int
    let filter: ChangesFilter
    var seen: [Version] = []
    var isParked = false

    var query: ChangesQuery { ChangesQuery(since: since, limit: limit, filter: filter) }

    mutating func take(_ page: ChangesPage) {
        seen += page.commits.map(\.version)
        since = page.next
    }
}

/// A client that wants the latest value of one selection.
private struct Watcher {
    let selection: Selection
    var bytes: [UInt8]?
    var isParked = false
}

@Suite("Followers and waiters against a model")
struct HubModelTests {
    private static let selections: [Selection] = [
        .pointer(""), .pointer("/count"), .pointer("/items"), .pointer("/items/entities/3"), .pointer("/items/ids"),
        .pointer("/items/marked"), .view("items.names"),
    ]
    private static let filters: [ChangesFilter] = [
        ChangesFilter(), ChangesFilter(path: "/count"), ChangesFilter(path: "/items/entities/3"),
        ChangesFilter(types: ["items/put", "both"]), ChangesFilter(path: "/items", types: ["items/move"]),
    ]

    @Test(
        "each follower gets every version that passes once and in order, and no waiter is answered without a change",
        arguments: 0..<20)
    func everybody(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        let commits = Collection<Commit>()
        let queue = ManualQueue()
        let store = try Store.sample(journal: HookedJournal { $0.forEach(commits.add) }, queues: queue.queues)
        let watches = HubDriver(hub: store.hub)
        var followers: [Int: Follower] = [:]
        for token in 0..<30 {
            followers[token] = Follower(
                limit: Int.random(in: 1...5, using: &generator), filter: Self.filters[token % Self.filters.count])
        }
        var watchers: [Int: Watcher] = [:]
        for token in 100..<140 { watchers[token] = Watcher(selection: Self.selections[token % Self.selections.count]) }

        for _ in 0..<150 {
            // Some of the clients without a parked watch make their next request.
            for token in followers.keys.sorted() where Int.random(in: 0..<3, using: &generator) > 0 {
                try followers[token]?.ask(watches, as: token)
            }
            for token in watchers.keys.sorted() where Int.random(in: 0..<3, using: &generator) > 0 {
                try watchers[token]?.ask(watches, as: token)
            }
            // Some clients hang up.
            if let token = followers.keys.sorted().randomElement(using: &generator),
                let left = watches.leave(token)
            {
                followers[token]?.isParked = false
                if let page = left.page { followers[token]?.take(page) }
                if case .latest(let latest) = left.change { followers[token]?.since = latest.version }
            }
            let transactions = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                Transaction.of(Sample.anything(using: &generator))
            }
            for transaction in transactions.dropLast() { store.enqueue(PendingTransaction(transaction) { _ in }) }
            if let last = transactions.last { _ = store.submitNow(last) }

            // The hub runs a pass now and then, not after each turn.
            if Int.random(in: 0..<3, using: &generator) > 0 { queue.runAll() }
            for wake in watches.log.takeAll() {
                for token in wake.numbers {
                    if let page = wake.page {
                        followers[token]?.isParked = false
                        followers[token]?.take(page)
                        #expect(!page.commits.isEmpty, "seed \(seed): follower \(token) was woken for nothing")
                    } else if let reading = wake.reading {
                        #expect(
                            watchers[token]?.bytes != reading.encoded?.bytes,
                            "seed \(seed): watcher \(token) was woken for nothing")
                        watchers[token]?.bytes = reading.encoded?.bytes
                        watchers[token]?.isParked = false
                    }
                }
            }
        }

        queue.runAll()
        for wake in watches.log.takeAll() {
            for token in wake.numbers {
                if let page = wake.page {
                    followers[token]?.isParked = false
                    followers[token]?.take(page)
                } else if let reading = wake.reading {
                    watchers[token]?.bytes = reading.encoded?.bytes
                    watchers[token]?.isParked = false
                }
            }
        }
        #expect(commits.values.map(\.version) == Array(1...store.version), "seed \(seed)")
        for token in followers.keys.sorted() {
            guard var follower = followers[token] else { continue }
            while !follower.isParked { try follower.ask(watches, as: token) }
            let passing = commits.values.filter(follower.filter.passes).map(\.version)
            #expect(follower.seen == passing, "seed \(seed): follower \(token)")
        }
        for token in watchers.keys.sorted() {
            guard var watcher = watchers[token] else { continue }
            if !watcher.isParked { try watcher.ask(watches, as: token) }
            let last = try store.latest.encoded(watcher.selection)
            #expect(watcher.bytes == last?.bytes, "seed \(seed): watcher \(token)")
        }
    }
}

extension Follower {
    fileprivate mutating func ask(_ watches: HubDriver, as token: Int) throws {
        guard !isParked else { return }
        switch watches.follow(query, as: token) {
        case (.page(let page), _): take(page)
        case (.nothing, .parked): isParked = true
        case let other: Issue.record("a follower was answered \(other)")
        }
    }
}

extension Watcher {
    fileprivate mutating func ask(_ watches: HubDriver, as token: Int) throws {
        guard !isParked else { return }
        let known = bytes.map { TagSet.tags([Encoded($0).tag]) } ?? .tags([])
        switch try watches.park(token, client: "", at: selection, until: .otherThan(known)) {
        case .parked: isParked = true
        case .ready: bytes = try watches.hub.read(selection).encoded?.bytes
        case .refused(let share): Issue.record("a watcher was refused: \(share)")
        }
    }
}
