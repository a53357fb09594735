internal import Dispatch
internal import FoundationEssentials
internal import HTTPClient
internal import StateJSON
internal import StateStore
internal import Synchronization

/// Runs on a thread of its own, from one endpoint to the next.
final class TurnFollower: Sendable {
    enum Event: Sendable {
        case turn(Version, [UInt8])
        /// There may be turns that the watch has not sent.
        case missed
        /// A snapshot replaces it, or it is deleted behind the servers' backs.
        case deleted(Version)
        case document(key: [UInt8], ClusterDocument.Content)
        case replaced(String)
        /// Nil when an endpoint tells of turns again.
        case failing(String?)
    }

    private let keys: ClusterKeys
    private let connection: EtcdConnection
    private let queue = DispatchQueue(label: "storekeeper.cluster.follower")
    private let isStopped = Atomic(false)
    private let state: Mutex<State>

    private struct State {
        var revision: UInt64
        var failures = 0
        var line: [UInt8] = []
        var cluster: String?
    }

    init(_ address: ClusterAddress, _ keys: ClusterKeys, from revision: UInt64) throws {
        self.keys = keys
        connection = try EtcdConnection(address)
        state = Mutex(State(revision: revision))
    }

    func start(_ take: @escaping @Sendable (Event) -> Void) {
        queue.async { [self] in
            let endpoints = connection.endpoints
            var index = Int.random(in: endpoints.indices)
            while !isStopped.load(ordering: .relaxed) {
                let failure = follow(endpoints[index], take)
                guard !isStopped.load(ordering: .relaxed) else { return }
                index = (index + 1) % endpoints.count
                let failures = state.withLock { state in
                    state.failures += 1
                    return state.failures
                }
                if failures == endpoints.count { take(.failing(failure)) }
                pause(milliseconds: 100)
            }
        }
    }

    /// Goes on by another endpoint, because this one does not tell what there is.
    func renew() { connection.http.interrupt() }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        connection.http.cancel()
        queue.sync {}
    }

    private func follow(_ endpoint: String, _ take: @escaping (Event) -> Void) -> String {
        let revision = state.withLock { state in
            state.line = []
            return state.revision
        }
        let watch = Etcd.Watch(
            create_request: .init(
                // From behind the parts of snapshots to the last turn: all but the turns are few, and the documents are among them.
                key: Data(ClusterKeys.end(of: keys.chunks).utf8), range_end: Data(ClusterKeys.end(of: keys.turns).utf8),
                start_revision: "\(revision)"))
        var fault: String?
        do {
            let request = HTTPConnection.Request(
                endpoint + "/v3/watch", method: "POST", fields: try connection.fields(at: endpoint),
                body: try JSON.encode(watch), within: nil, bodyBytesMax: .max)
            let response = try connection.http.perform(request) { bytes in
                fault = self.take(bytes, take)
                return fault == nil
            }
            return "\(endpoint): the watch has ended with status \(response.status)"
        } catch let failure as HTTPConnection.Failure {
            return fault ?? "\(ClusterFault(failure, endpoint))"
        } catch {
            return "\(error)"
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ take: (Event) -> Void) -> String? {
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = state.withLock { state in exchange(&state.line, with: []) } + rest[..<end]
            rest = rest[(end + 1)...]
            if let fault = self.take(line: line, take) { return fault }
        }
        if !rest.isEmpty { state.withLock { $0.line += rest } }
        return nil
    }

    private func take(line: [UInt8], _ take: (Event) -> Void) -> String? {
        guard let message = try? Etcd.decode(Etcd.WatchLine.self, from: line) else {
            return "the watch has sent a line that cannot be read"
        }
        guard let result = message.result else {
            connection.forget()
            return message.error?.message ?? "the watch has failed"
        }
        if state.withLock({ exchange(&$0.failures, with: 0) }) >= connection.endpoints.count { take(.failing(nil)) }
        if result.canceled == true {
            // Compacted turns cannot be sent any more; the turns behind the tip are read.
            if let compacted = result.compact_revision.flatMap({ UInt64($0) }), compacted > 0 {
                state.withLock { $0.revision = compacted }
                take(.missed)
            }
            // It may have done so because the user's token has expired: only some versions say it.
            connection.forget()
            return result.cancel_reason ?? "etcd has ended the watch"
        }
        let cluster = result.header.cluster_id
        if state.withLock({ exchange(&$0.cluster, with: cluster) ?? cluster }) != cluster {
            take(.replaced("its etcd is another cluster now"))
        }
        for event in result.events ?? [] {
            if event.kv.key.elementsEqual(keys.meta.utf8) {
                take(.replaced(event.type == "DELETE" ? "it is deleted" : "it has begun anew"))
            }
            guard let first = keys.version(ofTurn: event.kv.key) else {
                take(.document(key: Array(event.kv.key), .init(event.kv, isDeleted: event.type == "DELETE")))
                continue
            }
            take(event.type == "DELETE" ? .deleted(first) : .turn(first, event.kv.bytes))
        }
        if let next = result.nextRevision { state.withLock { $0.revision = max($0.revision, next) } }
        return nil
    }
}
