internal import DequeModule

/// The waiting work of clients, one client after the other: the next work is that of the client whose last one is the
/// longest ago.
package struct ClientTurns<Work: Sendable>: Sendable {
    /// The waiting work of each client, in order; a client without any has no entry.
    private var waiting: [String: Deque<Work>] = [:]
    /// The clients with waiting work, in the order of their turns.
    private var turns: Deque<String> = []
    /// How much work waits.
    package private(set) var count = 0

    /// Makes one without work.
    package init() {}

    /// Whether work of a client waits.
    package func hasWork(of client: String) -> Bool { count > 0 && waiting[client] != nil }

    /// Adds work behind the earlier work of the client.
    package mutating func append(_ work: Work, of client: String) {
        if waiting[client] == nil { turns.append(client) }
        waiting[client, default: []].append(work)
        count += 1
    }

    /// Removes the next work, or returns nil.
    package mutating func next() -> Work? {
        guard let client = turns.popFirst(), let work = waiting[client]?.popFirst() else { return nil }
        count -= 1
        if waiting[client]?.isEmpty == true {
            waiting[client] = nil
        } else {
            turns.append(client)
        }
        return work
    }
}
