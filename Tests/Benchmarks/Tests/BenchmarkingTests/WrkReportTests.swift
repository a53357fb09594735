import Benchmarking
import Testing

@Suite("Reports of wrk")
struct WrkReportTests {
    static let text = """
        Running 3s test @ http://127.0.0.1:43671/v1/state/counter
          1 threads and 64 connections
          Thread Stats   Avg      Stdev     Max   +/- Stdev
            Latency     1.21ms  564.13us   6.65ms   76.01%
            Req/Sec    49.95k     9.40k   68.20k    73.33%
          Latency Distribution
             50%  850.00us
             75%    1.48ms
             90%    1.84ms
             99%    3.17ms
          149157 requests in 3.01s, 36.42MB read
        Requests/sec:  49599.10
        Transfer/sec:     12.11MB
        """

    @Test("counts, rate and percentiles are read")
    func figures() throws {
        let report = try #require(WrkReport(Self.text))

        #expect(report.requestsCount == 149_157)
        #expect(report.perSecond == 49_599.1)
        #expect(abs(report.p50Milliseconds - 0.85) < 1e-9)
        #expect(abs(report.p99Milliseconds - 3.17) < 1e-9)
        #expect(report.complaints.isEmpty)
    }

    @Test("answers other than 2xx and errors of sockets are complaints")
    func complaints() throws {
        let report = try #require(
            WrkReport(
                Self.text + "\n  Non-2xx or 3xx responses: 12\n  Socket errors: connect 0, read 3, write 0, timeout 0"))

        #expect(report.complaints.count == 2)
        #expect(report.complaints.first == "Non-2xx or 3xx responses: 12")
    }

    @Test("a text without a rate is no report")
    func incomplete() {
        #expect(WrkReport("unable to connect to 127.0.0.1:1 Connection refused") == nil)
    }

    @Test(
        "times are read with their unit",
        arguments: [("850us", 0.85), ("1.11ms", 1.11), ("2.05s", 2050), ("1.50m", 90_000)])
    func times(text: String, milliseconds: Double) throws {
        #expect(abs(try #require(WrkReport.milliseconds(text)) - milliseconds) < 1e-9)
    }

    @Test("a number without a unit is no time", arguments: ["12", "", "ms", "1.2.3s"])
    func noTime(text: String) {
        #expect(WrkReport.milliseconds(text) == nil)
    }
}
