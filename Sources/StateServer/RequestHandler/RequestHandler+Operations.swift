internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// What an operator can ask, and the end.
extension RequestHandler {
    func readiness(_ requestID: String) -> Response {
        if isDraining.load(ordering: .relaxed) { return respond(.draining, requestID) }
        if let journal, journal.failure != nil {
            // No client may send an action to a server that is not ready: the server finds out by itself that all is well.
            schedule.read(0) { journal.probe() }
            return respond(.notDurable, requestID)
        }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    func metrics() -> Response {
        let text = Metrics.text(
            counters, gauges.statistics, head: latest.version, waiters: hub.watchesCount, streams: hub.streamsCount,
            mailbox: store.waitingCount, isDurable: journal?.failure == nil)
        return Response(status: .ok, fields: [.contentType: "text/plain; version=0.0.4"], body: Array(text.utf8))
    }

    /// Turns to stopping: not ready, no new waits, no new actions.
    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
        hub.endGeneration()
    }

    /// Answers all who wait as if their time were up, spread over a short while so that they do not all come back at once,
    /// and finishes the actions that are in hand.
    func drain(over window: Duration) async {
        let ids = hub.watchIDs
        let portions = 10
        for portion in 0..<portions {
            hub.drain(stride(from: portion, to: ids.count, by: portions).map { ids[$0] })
            // Being cancelled while stopping only makes it quicker.
            if ids.count > portions { try? await Task.sleep(for: window / portions) }
        }
        store.drain()
    }
}
