internal import DequeModule
internal import HeapModule

/// The next work is that of the client whose last one is the longest ago, and of its works the one that is due first.
package struct ClientTurns<Work: Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        let due: UInt64
        let number: UInt64
        let work: Work

        static func < (left: Entry, right: Entry) -> Bool { (left.due, left.number) < (right.due, right.number) }
        static func == (left: Entry, right: Entry) -> Bool { left.number == right.number }
    }

    private var waiting: [String: Heap<Entry>] = [:]
    private var turns: Deque<String> = []
    private var number: UInt64 = 0
    private var favoured: Deque<String> = []
    private var wasFavoured = false
    package private(set) var count = 0

    package init() {}

    package func hasWork(of client: String) -> Bool { count > 0 && waiting[client] != nil }

    /// At most `size` works that the client adds later, and that are smaller, may be done before it; with 0, none.
    package mutating func append(_ work: Work, of client: String, size: Int = 0) {
        if waiting[client] == nil { turns.append(client) }
        number += 1
        waiting[client, default: []].insert(
            Entry(due: number &+ UInt64(clamping: size), number: number, work: work))
        count += 1
    }

    /// Puts the client before the others, once; at most every second turn is given so.
    package mutating func favour(_ client: String) {
        if waiting[client] != nil, !favoured.contains(client) { favoured.append(client) }
    }

    package mutating func next() -> Work? { count > 0 ? next { _ in true }?.work : nil }

    package mutating func next(where mayHaveTurn: (String) -> Bool) -> (client: String, work: Work)? {
        let first = wasFavoured ? nil : favoured.first(where: mayHaveTurn)
        guard let index = first.flatMap({ turns.firstIndex(of: $0) }) ?? turns.firstIndex(where: mayHaveTurn) else {
            return nil
        }
        let client = turns.remove(at: index)
        guard let work = waiting[client]?.popMin()?.work else { return nil }
        count -= 1
        wasFavoured = first != nil
        if !favoured.isEmpty { favoured.removeAll { $0 == client } }
        if waiting[client]?.isEmpty == true {
            waiting[client] = nil
        } else {
            turns.append(client)
        }
        return (client, work)
    }

    package func hasNext(where mayHaveTurn: (String) -> Bool) -> Bool { turns.contains(where: mayHaveTurn) }
}
