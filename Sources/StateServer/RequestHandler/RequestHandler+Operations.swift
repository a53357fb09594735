internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func readiness(_ requestID: RequestID) -> Response {
        let report = ServerReport(self)
        if report.isDraining { return respond(.draining, requestID) }
        if report.journalFailure != nil {
            probeJournal()
            return respond(.notDurable, requestID)
        }
        if report.unreadableReason != nil { return respond(.tokensUnreadable, requestID) }
        if let failure = store.domainFailure { return respond(.domainFailed(failure), requestID) }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    func verboseReadiness() -> Response {
        let report = ServerReport(self)
        if report.journalFailure != nil { probeJournal() }
        return report.readiness
    }

    /// A load balancer sends no action to a server that is not ready, so the probes themselves have to try the journal.
    private func probeJournal() {
        if let journal { schedule.slow(.read, "") { journal.probe() } }
    }

    func metricsText() -> Response {
        sampleMetrics()
        return Response(
            status: .ok, fields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
            body: metrics.text + ProcessFigures.text())
    }

    func sampleMetrics() { metrics.sample(ServerReport(self)) }

    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
        hub.endGeneration()
        backups?.stop()
        forks?.stop()
    }

    /// Ends every wait as if its time were up, spread over the window, so that the clients do not all return at once.
    func drain(over window: Duration) async {
        let ids = hub.watchIDs
        let parts = 10
        for part in 0..<parts {
            hub.drain(stride(from: part, to: ids.count, by: parts).map { ids[$0] })
            // A cancellation only shortens the window.
            if ids.count > parts { try? await Task.sleep(for: window / parts) }
        }
        store.drain()
    }
}
