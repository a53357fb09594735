import Testing

@testable import StateServer

@Suite("Bulk loads")
struct BulkLoadTests {
    @Test(
        "the portions of all loads cost about two milliseconds, down to a single transaction, and grows fourfold at most",
        arguments: [
            (32, Duration.zero, 1, 128), (1024, .zero, 1, 1024), (512, .microseconds(2), 1, 1000),
            (32, .microseconds(2), 1, 128), (512, .microseconds(2), 4, 250), (9, .milliseconds(1), 1, 2),
            (2, .milliseconds(1), 1, 2), (9, .milliseconds(3), 1, 1), (2, .milliseconds(1), 8, 1),
            (1, .microseconds(500), 1, 4),
        ])
    func portion(count: Int, cost: Duration, loads: Int, next: Int) {
        #expect(BulkLoad.portion(after: count, costing: cost, among: loads) == next)
    }
}
