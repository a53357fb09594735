internal import Dispatch
internal import HTTPClient
internal import Synchronization

/// An etcd whose file is as large as its quota takes nothing but deletions, which do not make the file smaller, until
/// an operator has compacted and defragmented it and disarmed its alarm.
///
/// Source: etcd's page "Maintenance", "Space quota".
final class QuotaWatch: Sendable {
    struct Finding: Equatable, Sendable {
        var endpoint: String
        var bytes: Int
        var bytesMax: Int
        var isAlarmed = false

        var share: Double { Double(bytes) / Double(bytesMax) }

        var isFull: Bool { isAlarmed || share >= QuotaWatch.refused }

        var sentence: String {
            isAlarmed
                ? "etcd has the alarm NOSPACE: compact and defragment it, or raise --quota-backend-bytes, then `etcdctl alarm disarm`"
                : "the database of the etcd \(endpoint) has \(bytes) of the \(bytesMax) bytes of its quota: defragment it, or raise --quota-backend-bytes"
        }
    }

    /// An operator hears of the first part of the quota; from the second on nothing is appended.
    static let (warned, refused) = (0.7, 0.9)

    private let connection: EtcdConnection
    private let client: EtcdClient
    private let queue = DispatchQueue(label: "storekeeper.cluster.quota", qos: .utility)
    private let isStopped = Atomic(false)

    private static let pause = DispatchTimeInterval.seconds(10)

    init(_ address: ClusterAddress) throws {
        connection = try EtcdConnection(address)
        client = try EtcdClient(address, label: "alarms")
    }

    func start(_ take: @escaping @Sendable (Finding?) -> Void) {
        queue.async { [weak self] in
            guard let self, !isStopped.load(ordering: .relaxed) else { return }
            let endpoints = connection.endpoints
            var found = endpoints.compactMap { look(at: $0) }.max { $0.share < $1.share }
            let hasAlarm = hasAlarm
            if hasAlarm { found = found ?? Finding(endpoint: endpoints[0], bytes: 0, bytesMax: 1) }
            found?.isAlarmed = hasAlarm
            take(found)
            queue.asyncAfter(deadline: .now() + Self.pause) { [weak self] in self?.start(take) }
        }
    }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        connection.http.cancel()
        client.cancel()
    }

    /// False where etcd does not say so.
    private var hasAlarm: Bool {
        let answer: Etcd.AlarmResponse? = try? client.call("/v3/maintenance/alarm", ["action": "GET"])
        return answer?.alarms?.contains { $0.alarm == "NOSPACE" } ?? false
    }

    private func look(at endpoint: String) -> Finding? {
        let request = HTTPConnection.Request(endpoint + "/metrics", within: .seconds(2), bodyBytesMax: 4 << 20)
        guard let response = try? connection.http.perform(request), response.status == 200 else { return nil }
        return Self.read(String(decoding: response.body, as: UTF8.self), endpoint)
    }

    static func read(_ metrics: String, _ endpoint: String) -> Finding? {
        func value(_ name: String) -> Int? {
            let line = metrics.split(separator: "\n").first { $0.hasPrefix(name + " ") }
            return line.flatMap { Double($0.dropFirst(name.count + 1)) }.flatMap { Int(exactly: $0.rounded()) }
        }
        guard let bytes = value("etcd_mvcc_db_total_size_in_bytes"),
            let bytesMax = value("etcd_server_quota_backend_bytes"), bytesMax > 0
        else { return nil }
        return Finding(endpoint: endpoint, bytes: bytes, bytesMax: bytesMax)
    }
}
