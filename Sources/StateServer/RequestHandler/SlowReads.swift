internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The slow reads under way, with their limits in all and for each client; any thread may call any method.
final class SlowReads: Sendable {
    private struct State {
        var count = 0
        var byClient: [String: Int] = [:]
        var abandonable: Set<UInt64> = []
    }

    private let state = Mutex(State())
    private let countMax: Int
    private let countPerClientMax: Int

    init(countMax: Int = 1024, countPerClientMax: Int = 256) {
        self.countMax = countMax
        self.countPerClientMax = countPerClientMax
    }

    /// Counts a read, which is abandonable if it ends when its client hangs up; nil lets it begin.
    func begin(_ exchange: Exchange, isAbandonable: Bool) -> WatchRefusal? {
        state.withLock { state in
            let count = state.byClient[exchange.client] ?? 0
            guard state.count < countMax else { return .all }
            guard count < countPerClientMax else { return .client }
            state.count += 1
            state.byClient[exchange.client] = count + 1
            if isAbandonable { state.abandonable.insert(exchange.id) }
            return nil
        }
    }

    func end(_ exchange: Exchange) {
        state.withLock { state in
            state.count -= 1
            let left = (state.byClient[exchange.client] ?? 0) - 1
            state.byClient[exchange.client] = left > 0 ? left : nil
            state.abandonable.remove(exchange.id)
        }
    }

    func isAbandonable(_ id: UInt64) -> Bool { state.withLock { $0.abandonable.contains(id) } }
}
