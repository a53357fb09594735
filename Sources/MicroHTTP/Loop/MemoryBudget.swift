package import HTTPMessages
import Synchronization

/// Counts bodies until their answers are sent, and answers and chunks over ``smallBytesMax`` until their clients have
/// taken them, shared bytes once; the limit of connections bounds what is smaller, and any thread may call any method.
package final class MemoryBudget: Sendable {
    private struct State {
        var bytes = 0
        var sent: [String: Int] = [:]
        /// The key is the address of the memory.
        var unread: [UInt: (holders: Int, bytes: Int, client: String)] = [:]

        mutating func count(_ more: Int, for client: String?) {
            bytes += more
            guard let client else { return }
            let own = (sent[client] ?? 0) + more
            sent[client] = own > 0 ? own : nil
        }
    }

    package let bytesMax: Int
    private let state = Mutex(State())
    static let smallBytesMax = 64 << 10

    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Half of the budget, so that there is room for another client.
    var shareMax: Int { bytesMax / 2 }

    package var bytes: Int { state.withLock { $0.bytes } }

    /// O(n) in the number of clients with counted bytes.
    package var shares: (clientsCount: Int, largestBytes: Int) {
        state.withLock { ($0.sent.count, $0.sent.values.max() ?? 0) }
    }

    var isExceeded: Bool { bytes > bytesMax }

    func isExceeded(by client: String) -> Bool {
        state.withLock { $0.bytes > bytesMax || $0.sent[client] ?? 0 > shareMax }
    }

    /// Counts nothing where there is a problem; without a client, the bytes are in no share.
    package func reserve(_ bytes: Int, for client: String? = nil) -> Problem? {
        state.withLock { state in
            if let client, state.sent[client, default: 0] + bytes > shareMax { return .tooManyBytes }
            guard state.bytes + bytes <= bytesMax else { return .memoryExhausted }
            state.count(bytes, for: client)
            return nil
        }
    }

    package func release(_ bytes: Int, for client: String? = nil) { state.withLock { $0.count(-bytes, for: client) } }

    /// Counts as long as the result lives, and for the first of several clients; nil for few bytes.
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

    package final class Reservation: Sendable {
        private let budget: MemoryBudget
        private let client: String
        private let count = Atomic(0)

        var bytes: Int { count.load(ordering: .relaxed) }

        init(_ budget: MemoryBudget, for client: String) { (self.budget, self.client) = (budget, client) }

        deinit { if bytes > 0 { budget.release(bytes, for: client) } }

        /// Counts nothing where there is a problem.
        func grow(to bytes: Int) -> Problem? {
            if let problem = budget.reserve(bytes - self.bytes, for: client) { return problem }
            count.store(bytes, ordering: .relaxed)
            return nil
        }
    }

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
