import Testing

@testable import StateServer

@Suite("Portions of a bulk load")
struct PortionSizeTests {
    /// The sizes of twelve portions where a turn costs some microseconds, and each transaction some more.
    private func sizes(turn: Int, transaction: Int, loads: Int = 1) -> [Int] {
        var size = PortionSize()
        return (0..<12).map { _ in
            let count = size.count
            size.adapt(to: .microseconds(turn + transaction * count), of: count, among: loads)
            return count
        }
    }

    @Test(
        "a portion becomes as large as costs two milliseconds, down to a single transaction",
        arguments: [(0, 1024), (1, 1024), (10, 200), (90, 22), (1000, 2), (3000, 1), (100_000, 1)])
    func fitting(cost: Int, count: Int) {
        let sizes = sizes(turn: 0, transaction: cost)
        #expect(sizes.first == 8)
        #expect(sizes.last == count, "\(sizes)")
    }

    @Test("several loads share the time")
    func shared() { #expect(sizes(turn: 0, transaction: 10, loads: 4).last == 50) }

    @Test("a turn that is dear by itself takes as many transactions as cost as much again")
    func fixed() {
        #expect(sizes(turn: 13_000, transaction: 0).suffix(3).allSatisfy { $0 >= 512 })
        #expect(sizes(turn: 13_000, transaction: 100).contains(130))
        #expect(sizes(turn: 500, transaction: 100).last == 15)
    }

    @Test("a portion grows fourfold at most, and dear transactions behind cheap ones make it small at once")
    func changes() {
        #expect(sizes(turn: 0, transaction: 0).prefix(4) == [8, 32, 128, 512])
        var size = PortionSize()
        size.adapt(to: .microseconds(8), of: 8, among: 1)
        size.adapt(to: .microseconds(32), of: 32, among: 1)
        size.adapt(to: .milliseconds(128), of: 128, among: 1)
        #expect(size.count == 2)
    }
}
