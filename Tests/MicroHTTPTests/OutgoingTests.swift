import Glibc
import Testing

@testable import MicroHTTP

@Suite("Shares of an iteration")
struct OutgoingTests {
    /// Sends what is left to a socket that takes so many bytes at once; returns what it has taken.
    private func send(_ outgoing: inout Outgoing, atOnce count: Int) -> (Outgoing.Progress, [UInt8]) {
        var taken: [UInt8] = []
        let progress = outgoing.send { bytes in
            taken += bytes.prefix(count)
            return min(count, bytes.count)
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
        var results: [(Int, Int32)] = [(2, 0), (-1, EINTR), (-1, EAGAIN), (-1, EPIPE)]
        let socket = { (_: UnsafeRawBufferPointer) in
            let (count, code) = results.removeFirst()
            errno = code
            return count
        }

        #expect(outgoing.send(by: socket) == .full)
        #expect(outgoing.sentCount == 2)
        #expect(outgoing.send(by: socket) == .broken)
        #expect(send(&outgoing, atOnce: 9) == (.done, [3]))
    }

    @Test("a head, a body and what follows are sent in this order, however few bytes a socket takes", arguments: 1...7)
    func parts(atOnce count: Int) {
        var outgoing = Outgoing([3, 4, 5], after: [1, 2])
        _ = outgoing.send { _ in 1 }
        outgoing = outgoing.followed(by: Outgoing([6, 7]))
        var received: [UInt8] = []
        while outgoing.unsentCount > 0 { received += send(&outgoing, atOnce: count).1 }

        #expect(received == Array(UInt8(1)...7).suffix(received.count))
        #expect(outgoing.sentCount == 7)
    }

    @Test("a chunk before a shared one is a chunk of its own, and is there without frames for HTTP/1.0")
    func chunks() {
        let shared = StreamChunk(Array("data".utf8), isLast: true)
        let chunk = StreamChunk(Array("head".utf8), before: shared)

        for (isChunked, wanted) in [(true, "4\r\nhead\r\n4\r\ndata\r\n0\r\n\r\n"), (false, "headdata")] {
            var outgoing = chunk.outgoing(isChunked: isChunked)
            var sent: [UInt8] = []
            while outgoing.unsentCount > 0 { sent += send(&outgoing, atOnce: 100).1 }
            #expect(String(decoding: sent, as: UTF8.self) == wanted)
        }
        #expect(chunk.isLast && StreamChunk([]).content.isEmpty)
        #expect(StreamChunk([]).outgoing(isChunked: true).unsentCount == 0)
    }
}
