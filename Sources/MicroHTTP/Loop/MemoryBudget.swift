import Synchronization

/// The memory that clients occupy with what they have sent and with what they do not read, and its limits.
///
/// It counts the bodies of requests until their answers are sent, and answers and chunks over ``smallBytesMax`` whose
/// clients have not taken them; bytes that several clients share count once. What is small is not counted: the limit of
/// connections bounds it. Any thread may call any method.
package final class MemoryBudget: Sendable {
    private struct State {
        var bytes = 0
        /// The bytes that each client has sent, or that are held for it.
        var sent: [String: Int] = [:]
        /// The unread bytes by the address of their memory, with the number of holders.
        var unread: [UInt: (holders: Int, bytes: Int, client: String)] = [:]

        mutating func count(_ more: Int, for client: String) {
            bytes += more
            let own = (sent[client] ?? 0) + more
            sent[client] = own > 0 ? own : nil
        }
    }

    /// The most bytes that all clients occupy together.
    package let bytesMax: Int
    private let state = Mutex(State())
    /// A body, an answer or a chunk up to this size is not counted.
    static let smallBytesMax = 64 << 10

    /// Makes a budget of which nothing is used.
    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// The most bytes that one client may have sent: half of the budget, so that there is room for another.
    var shareMax: Int { bytesMax / 2 }

    /// How many bytes are counted at this moment.
    package var bytes: Int { state.withLock { $0.bytes } }

    /// How many clients have sent bytes that are counted, and how many the client with the most.
    ///
    /// The cost is O(n) in the number of these clients.
    package var shares: (clientsCount: Int, largestBytes: Int) {
        state.withLock { ($0.sent.count, $0.sent.values.max() ?? 0) }
    }

    var isExceeded: Bool { bytes > bytesMax }

    /// Whether a client occupies more than its share, or all more than they may.
    func isExceeded(by client: String) -> Bool {
        state.withLock { $0.bytes > bytesMax || $0.sent[client] ?? 0 > shareMax }
    }

    /// Counts bytes that the server needs for a while; returns false, and counts nothing, where they are too many.
    package func reserve(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.bytes + bytes <= bytesMax else { return false }
            state.bytes += bytes
            return true
        }
    }

    /// Gives back what ``reserve(_:)`` has counted.
    package func release(_ bytes: Int) { state.withLock { $0.bytes -= bytes } }

    /// Counts bytes that a client occupies; returns the fault, and counts nothing, where they are too many.
    package func reserve(_ bytes: Int, for client: String) -> TransportFault? {
        state.withLock { state in
            let sent = state.sent[client] ?? 0
            guard sent + bytes <= shareMax else { return .shareExhausted }
            guard state.bytes + bytes <= bytesMax else { return .memoryExhausted }
            state.count(bytes, for: client)
            return nil
        }
    }

    /// Gives back what ``reserve(_:for:)`` has counted.
    package func release(_ bytes: Int, for client: String) {
        state.withLock { $0.count(-bytes, for: client) }
    }

    /// Counts bytes that a client has not taken, as long as the result lives, and for the first of several clients; nil
    /// for few bytes.
    func hold(_ bytes: [UInt8], for client: String) -> Holding? {
        guard bytes.count > Self.smallBytesMax else { return nil }
        let address = bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        state.withLock { state in
            let held = state.unread[address]
            state.unread[address] = ((held?.holders ?? 0) + 1, bytes.count, held?.client ?? client)
            if held == nil { state.count(bytes.count, for: client) }
        }
        return Holding(self, bytes, address)
    }

    private func letGo(_ address: UInt) {
        state.withLock { state in
            guard let held = state.unread[address] else { return }
            state.unread[address] = held.holders > 1 ? (held.holders - 1, held.bytes, held.client) : nil
            if held.holders == 1 { state.count(-held.bytes, for: held.client) }
        }
    }

    /// The bytes that a client sends as the body of a request, which are counted as long as this object lives.
    final class Reservation: Sendable {
        private let budget: MemoryBudget
        private let client: String
        private let count = Atomic(0)

        var bytes: Int { count.load(ordering: .relaxed) }

        init(_ budget: MemoryBudget, for client: String) { (self.budget, self.client) = (budget, client) }

        deinit { if bytes > 0 { budget.release(bytes, for: client) } }

        /// The fault where there is no room for so many bytes in all: then none are counted.
        func grow(to bytes: Int) -> TransportFault? {
            if let fault = budget.reserve(bytes - self.bytes, for: client) { return fault }
            count.store(bytes, ordering: .relaxed)
            return nil
        }
    }

    /// The count of unread bytes, which ends with this object.
    final class Holding: Sendable {
        private let budget: MemoryBudget
        /// The bytes themselves, so that no others can be at their address.
        private let bytes: [UInt8]
        private let address: UInt

        fileprivate init(_ budget: MemoryBudget, _ bytes: [UInt8], _ address: UInt) {
            self.budget = budget
            self.bytes = bytes
            self.address = address
        }

        deinit { budget.letGo(address) }
    }
}
