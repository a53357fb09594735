internal import Synchronization

package struct WatchLimits: Sendable {
    package var watchesMax: Int
    package var watchesPerClientMax = 20_000

    /// About how many bytes the values may have that the watches wait for; one client's, half of them.
    package var valuesBytesMax = 64 << 20
    package var viewsMax = 10_000

    package var queriesMax = 2000
    /// About how many bytes may be kept of watched queries; one that would take more is evaluated anew.
    package var queriesBytesMax = 64 << 20
    package var memory = ClientMemory()
}

extension WatchLimits {
    package init() { self.init(watchesMax: 20_000) }
}

package enum WatchRefusal: Error, Sendable {
    case all
    case client
    case views
    case queries
    case memory(ClientMemory.Refusal)
}

/// The memory that clients occupy together, of which each has a share.
package struct ClientMemory: Sendable {
    package enum Refusal: Error, Sendable { case all, client }

    /// Counts more bytes for a client, or fewer; returns the refusal, and counts nothing, where there is no room.
    package var count: @Sendable (_ more: Int, _ client: String) -> Refusal? = { _, _ in nil }

    package init() {}
}

/// The bytes that something holds for a client, which count as long as this object lives; one thread at a time uses it.
package final class HeldMemory: Sendable {
    private let memory: ClientMemory
    private let client: String
    private let bytes = Atomic(0)

    package init(_ memory: ClientMemory, for client: String) { (self.memory, self.client) = (memory, client) }

    deinit { _ = hold(0) }

    /// Counts so many bytes and no others; returns the refusal, and counts as before, where there is no room.
    package func hold(_ count: Int) -> ClientMemory.Refusal? {
        let more = count - bytes.load(ordering: .relaxed)
        if more != 0, let refusal = memory.count(more, client) { return refusal }
        bytes.store(count, ordering: .relaxed)
        return nil
    }
}
