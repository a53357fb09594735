internal import StateJSON
internal import Synchronization

/// The order of a client's actions: one is sent when those before it have ended.
///
/// Any thread may call.
final class Outbox: Sendable {
    /// The calls that have not ended: the first is sent; another's stream ends when it is the first or its time is up.
    private let entries = Mutex<[AsyncStream<Never>.Continuation]>([])

    nonisolated(nonsending) func inTurn(
        within limit: Duration, _ send: (_ left: Duration) async throws -> Answer
    ) async throws -> Answer {
        let start = ContinuousClock.now
        let (turn, entry) = AsyncStream<Never>.makeStream()
        let isFirst = entries.withLock { entries in
            entries.append(entry)
            return entries.count == 1
        }
        defer { leave(entry) }
        if !isFirst {
            let timer = Task {
                try await Task.sleep(for: limit)
                entry.finish()
            }
            defer { timer.cancel() }
            for await _ in turn {}
            try Task.checkCancellation()
            guard entries.withLock({ $0.first == entry }) else {
                let detail = "the actions before this one have had no answer, so it was not sent"
                throw StateClient.Problem(status: 0, code: "no-answer", detail: detail)
            }
        }
        return try await send(max(.zero, limit - (ContinuousClock.now - start)))
    }

    private func leave(_ entry: AsyncStream<Never>.Continuation) {
        let next = entries.withLock { entries in
            let wasFirst = entries.first == entry
            entries.removeAll { $0 == entry }
            return wasFirst ? entries.first : nil
        }
        next?.finish()
    }
}
