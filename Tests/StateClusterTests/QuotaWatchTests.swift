import Testing

@testable import StateCluster

@Suite("The quota of etcd")
struct QuotaWatchTests {
    private func metrics(_ lines: String...) -> String {
        (["# TYPE etcd_mvcc_db_total_size_in_bytes gauge"] + lines).joined(separator: "\n")
    }

    @Test("is read from the metrics of etcd, whose numbers are floating point")
    func read() throws {
        let text = metrics(
            "etcd_mvcc_db_total_size_in_bytes 1.966080e+07", "etcd_mvcc_db_total_size_in_use_in_bytes 20480",
            "etcd_server_quota_backend_bytes 2.147483648e+09")

        let found = try #require(QuotaWatch.read(text, "http://a:2379"))

        #expect(found == .init(endpoint: "http://a:2379", bytes: 19_660_800, bytesMax: 2_147_483_648))
        #expect(!found.isFull)
    }

    @Test(
        "is not known where a number is missing, or is no number", arguments: ["", "etcd_server_quota_backend_bytes x"])
    func unknown(line: String) {
        #expect(QuotaWatch.read(metrics("etcd_mvcc_db_total_size_in_bytes 100", line), "http://a:2379") == nil)
    }

    @Test(
        "is full from nine tenths on, and with the alarm of etcd",
        arguments: [(89, false, false), (90, false, true), (1, true, true)])
    func full(bytes: Int, isAlarmed: Bool, isFull: Bool) {
        let found = QuotaWatch.Finding(endpoint: "http://a:2379", bytes: bytes, bytesMax: 100, isAlarmed: isAlarmed)

        #expect(found.isFull == isFull)
    }
}
