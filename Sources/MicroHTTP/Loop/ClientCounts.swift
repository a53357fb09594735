/// How many connections each client has, parked ones included.
///
/// A client is an address: all that comes through a proxy is one client. Only the loop thread uses it.
struct ClientCounts {
    private var counts: [String: Int] = [:]

    /// How many clients have connections.
    var count: Int { counts.count }

    /// How many connections a client has.
    subscript(client: String) -> Int { counts[client] ?? 0 }

    /// Counts a connection that has started.
    mutating func add(_ client: String) { counts[client, default: 0] += 1 }

    /// Counts a connection that has ended.
    mutating func remove(_ client: String) {
        let left = self[client] - 1
        counts[client] = left > 0 ? left : nil
    }

    /// The client that gives up a connection for one of another client where the limit is reached, or nil.
    ///
    /// A client with a quarter of all connections gives way to one that has less than half as many. So the share of a
    /// client binds only where connections run short, and a single client may have them all.
    ///
    /// The cost is O(n) in the number of clients.
    func largestClient(for client: String, placesCount: Int) -> String? {
        guard let most = counts.max(by: { $0.value < $1.value }), most.key != client else { return nil }
        return most.value >= max(1, placesCount / 4) && self[client] < most.value / 2 ? most.key : nil
    }
}
