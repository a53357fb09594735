import Testing

@testable import MicroHTTP

@Suite("Shares of an iteration")
struct OutgoingTests {
    /// Sends what is left to a socket that takes so many bytes at once; returns what it has taken.
    private func send(_ outgoing: inout Outgoing, atOnce count: Int) -> (Outgoing.Progress, [UInt8]) {
        var taken: [UInt8] = []
        let progress = outgoing.send { bytes in
            taken += bytes.prefix(count)
            return .bytes(min(count, bytes.count))
        }
        return (progress, taken)
    }

    @Test(
        "a socket that takes everything is given one share at a time",
        arguments: [
            (0, 1), (1, 1), (Outgoing.sendBytesMax, 1), (Outgoing.sendBytesMax + 1, 2), (16 << 20, 64),
        ])
    func share(count: Int, sharesCount: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 >> 8) }
        var outgoing = Outgoing(bytes)
        var (received, shares) = ([UInt8](), 0)

        while true {
            let (progress, taken) = send(&outgoing, atOnce: 100_000)
            received += taken
            shares += 1
            #expect(taken.count <= Outgoing.sendBytesMax)
            guard progress == .paused else {
                #expect(progress == .done)
                break
            }
        }

        #expect(shares == sharesCount)
        #expect(received == bytes)
    }

    @Test("a full socket and a broken one end the share, and what was taken counts")
    func ends() {
        var outgoing = Outgoing([1, 2, 3])
        var results: [Outgoing.Taken] = [.bytes(2), .none]

        #expect(outgoing.send { _ in results.removeFirst() } == .full)
        #expect(outgoing.sentCount == 2)
        #expect(outgoing.send { _ in .broken } == .broken)
        #expect(send(&outgoing, atOnce: 9) == (.done, [3]))
    }

    @Test("paused connections take turns, and one iteration resumes a limited number of them")
    func turns() {
        var queue = SendQueue()
        let count = SendQueue.resumedMax + 2
        for number in 0..<count { queue.append(UInt64(number)) }

        let first = queue.next()
        for number in first { queue.append(number) }
        let second = queue.next()

        #expect(first == (0..<SendQueue.resumedMax).map(UInt64.init))
        #expect(second.prefix(3) == [UInt64(count - 2), UInt64(count - 1), 0])
        #expect(!queue.isEmpty)
    }
}
