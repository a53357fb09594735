internal import Dispatch
internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The end, and what an operator can ask until then.
extension Desk {
    /// Turns to stopping: not ready, no new waits, no new actions.
    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
        freshness.end()
    }

    /// Answers everybody who waits as if the time were up, spread over a short while so that they do not all come back
    /// at once, and finishes the actions that are in hand.
    func drain(over window: Duration) async {
        // Who is just being told of a commit is told.
        teller.sync {}
        let (tokens, head) = board.leaveAll()
        let waiters = tokens.map(\.parked)
        let streaming = streams.withLock { Array($0.keys) }
        let portions = 10
        for portion in 0..<portions {
            for index in stride(from: portion, to: waiters.count, by: portions) {
                waiters[index].exchange.answer(timeout(waiters[index], head: head))
            }
            for index in stride(from: portion, to: streaming.count, by: portions) { end(streaming[index]) }
            // Being cancelled while stopping only makes it quicker.
            if waiters.count + streaming.count > portions { try? await Task.sleep(for: window / portions) }
        }
        door.drain()
    }

    func readiness(_ requestID: String) -> Response {
        if isDraining.load(ordering: .relaxed) { return respond(.draining, requestID) }
        if journal?.failure != nil {
            // Nobody may send an action to a server that is not ready: it has to find out by itself that all is well again.
            readers[0].async { [self] in journal?.probe() }
            return respond(.notDurable, requestID)
        }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    func metrics() -> Response {
        let statistics = server.withLock { $0?.statistics }
        let text = Metrics.text(
            counters, statistics, head: position.head.version, waiters: board.waitersCount,
            streams: streams.withLock(\.count),
            mailbox: door.waitingCount(), isDurable: journal?.failure == nil)
        return Response(status: .ok, fields: [.contentType: "text/plain; version=0.0.4"], body: Array(text.utf8))
    }
}
