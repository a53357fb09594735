internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Probes, metrics and stopping.
extension RequestHandler {
    func readiness(_ requestID: String) -> Response {
        if isDraining.load(ordering: .relaxed) { return respond(.draining, requestID) }
        if let journal, journal.failure != nil {
            // A load balancer sends no action to a server that is not ready, so the probe itself has to try the journal.
            schedule.read(0) { journal.probe() }
            return respond(.notDurable, requestID)
        }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    func metrics() -> Response {
        let text = Metrics.text(
            counters, gauges.statistics, latest: latest.version, waiters: hub.watchesCount, streams: hub.streamsCount,
            mailbox: store.waitingCount, memoryBytes: gauges.memory.bytes, isDurable: journal?.failure == nil)
        return Response(status: .ok, fields: [.contentType: "text/plain; version=0.0.4"], body: Array(text.utf8))
    }

    /// Begins to drain: not ready, no new waits, no new actions.
    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
        hub.endGeneration()
    }

    /// Ends every wait as if its time were up, and finishes the actions that wait for a turn.
    ///
    /// - Parameter window: the time over which the answers spread, so that the clients do not all return at once.
    func drain(over window: Duration) async {
        let ids = hub.watchIDs
        let portions = 10
        for portion in 0..<portions {
            hub.drain(stride(from: portion, to: ids.count, by: portions).map { ids[$0] })
            // A cancellation only shortens the window.
            if ids.count > portions { try? await Task.sleep(for: window / portions) }
        }
        store.drain()
    }
}
