internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The counters that the request handler raises.
final class Counters: Sendable {
    let commits = Atomic(0)
    let refusals = Atomic(0)
}

/// The text of `/metrics`, in the text format of Prometheus.
enum Metrics {
    static func text(
        _ counters: Counters, _ statistics: Statistics?, latest: Version, waiters: Int, streams: Int, mailbox: Int,
        memoryBytes: Int, isDurable: Bool
    ) -> String {
        var text = ""
        func figure(_ name: String, _ kind: String, _ help: String, _ value: some CustomStringConvertible) {
            text +=
                "# HELP storekeeper_\(name) \(help)\n# TYPE storekeeper_\(name) \(kind)\nstorekeeper_\(name) \(value)\n"
        }
        figure("version", "gauge", "Version of the state.", latest)
        figure(
            "commits_total", "counter", "Commits answered since the start.", counters.commits.load(ordering: .relaxed))
        figure(
            "refusals_total", "counter", "Actions refused since the start.", counters.refusals.load(ordering: .relaxed))
        figure("waiters", "gauge", "Requests that wait for a change, streams included.", waiters)
        figure("streams", "gauge", "Streams.", streams)
        figure("mailbox_actions", "gauge", "Actions that wait for a turn or for the disk.", mailbox)
        figure("memory_bytes", "gauge", "Bytes of long unfinished requests and unread answers.", memoryBytes)
        figure("journal_up", "gauge", "1 while the journal takes commits.", isDurable ? 1 : 0)
        if let statistics {
            figure("connections", "gauge", "Open connections.", statistics.connections)
            figure("requests_total", "counter", "Requests since the start.", statistics.requests)
            figure("transport_refusals_total", "counter", "Requests refused by the transport.", statistics.refused)
        }
        return text
    }
}
