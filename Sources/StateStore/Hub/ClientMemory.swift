internal import Synchronization

/// The memory that clients occupy together, of which each has a share.
package struct ClientMemory: Sendable {
    /// The limit that leaves no room: that of all clients together, or the share of one.
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
