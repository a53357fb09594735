// microhttpd.h includes the socket headers, and the compiler may attribute their declarations to its module.
import CMicroHTTPD
import Foundation
import Glibc
import HTTPMessages
import MicroHTTP
import Synchronization
import Testing

@Suite("Streams on the wire", .timeLimit(.minutes(5)))
struct StreamTests {
    /// A record of streams that begin with `begin`, and of the calls of their handlers.
    final class StreamRecord: Sendable {
        private let state = Mutex((streams: [Exchange](), writable: 0, expired: [Expiry]()))

        var streams: [Exchange] { state.withLock { $0.streams } }
        var writable: Int { state.withLock { $0.writable } }
        var expired: [Expiry] { state.withLock { $0.expired } }

        func handlers() -> Handlers {
            Handlers(
                receive: { [self] _, exchange in
                    state.withLock { $0.streams.append(exchange) }
                    return .streaming(.text("begin"), heartbeat: .seconds(60))
                },
                expire: { [self] _, reason in
                    state.withLock { $0.expired.append(reason) }
                    return .text("end")
                },
                writable: { [self] streams in state.withLock { $0.writable += streams.count } })
        }
    }

    @Test("chunks arrive in order, each after the one before was taken, and the last closes the connection")
    func chunks() async throws {
        let record = StreamRecord()
        try await withServer(record.handlers()) { server, port in
            let client = try RawClient(port: port)
            client.request("/")
            let head = client.response(hasBody: false)
            #expect(head?.field("connection") == "close")
            #expect(head?.field("content-length") == nil)

            for number in 1...100 {
                #expect(try await eventually { record.writable == number })
                Exchange.send(Array("\(number),".utf8), to: record.streams)
            }
            Exchange.send(Array("last".utf8), to: record.streams, isLast: true)

            #expect(head?.field("transfer-encoding") == "chunked")
            for chunk in ["begin"] + (1...100).map({ "\($0)," }) + ["last", ""] {
                #expect(client.chunk() == Array(chunk.utf8))
            }
            #expect(client.isAtEnd())
            #expect(try await eventually { server.statistics.connections == 0 && server.statistics.waiting == 0 })
            #expect(record.expired == [])
        }
    }

    /// How many requests of another client the loop has served when a long chunk is sent.
    private func requestsBesideLongChunk() async throws -> Int {
        let chunk = (0..<16 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 12) }
        let state = Mutex((stream: Exchange?.none, requestsCount: 0, requestsCountWhenWritable: [Int]()))
        let handlers = Handlers(
            receive: { request, exchange in
                guard request.target != "/stream" else {
                    state.withLock { $0.stream = exchange }
                    return .streaming(.text("begin"), heartbeat: .seconds(60))
                }
                let stream = state.withLock { state in
                    state.requestsCount += 1
                    return state.requestsCount == 1 ? state.stream : nil
                }
                if let stream { Exchange.send(chunk, to: [stream]) }
                return .now(.text("plain"))
            },
            writable: { _ in state.withLock { $0.requestsCountWhenWritable.append($0.requestsCount) } })
        try await withServer(handlers) { _, port in
            // One address would be one client, whose requests wait for the next iteration after 250 us of sending.
            let (reader, other) = (try RawClient(port: port), try RawClient(port: port, from: "127.0.0.2"))
            reader.request("/stream")
            _ = reader.response(hasBody: false)
            #expect(reader.chunk() == Array("begin".utf8))
            #expect(try await eventually { state.withLock { $0.requestsCountWhenWritable == [0] } })

            // The handler of the first request sends the chunk; the loop serves about one request in each iteration.
            other.send(String(repeating: "GET / HTTP/1.1\r\nHost: test\r\n\r\n", count: 40))

            #expect(reader.chunk() == chunk)
            for _ in 0..<40 { #expect(other.response()?.body == "plain") }
            #expect(try await eventually { state.withLock { $0.requestsCountWhenWritable.count == 2 } })
        }
        return state.withLock { $0.requestsCountWhenWritable.last ?? 0 }
    }

    @Test("a long chunk to a fast reader arrives whole, and the loop serves other clients meanwhile")
    func long() async throws {
        // The other work of the machine can take the loop's time from the requests of one chunk, and hardly of five in a row.
        var most = 0
        for _ in 0..<5 where most < 20 { most = max(most, try await requestsBesideLongChunk()) }
        #expect(most >= 20)
    }

    @Test("a stream that is cut off ends without the end of its body, and is not asked for its last chunk")
    func cutOff() async throws {
        let record = StreamRecord()
        try await withServer(record.handlers()) { server, port in
            let client = try RawClient(port: port)
            client.request("/")
            _ = client.response(hasBody: false)
            #expect(client.chunk() == Array("begin".utf8))

            record.streams[0].cutOff()
            Exchange.send(Array("late".utf8), to: record.streams, isLast: true)

            #expect(client.isAtEnd())
            #expect(record.expired.isEmpty)
            #expect(try await eventually { server.statistics.connections == 0 && server.statistics.waiting == 0 })
        }
    }

    @Test("a stream whose client does not read the last chunk is closed after the idle timeout")
    func unreadEnd() async throws {
        let record = StreamRecord()
        var configuration = ServerConfiguration.small()
        // Long beside the pauses of this test on a busy machine.
        configuration.idleTimeout = .seconds(8)
        try await withServer(record.handlers(), configuration: configuration) { server, port in
            let client = try RawClient(port: port)
            client.request("/")
            #expect(try await eventually { record.writable == 1 })

            Exchange.send([UInt8](repeating: 0x61, count: 16 << 20), to: record.streams, isLast: true)

            var connections: Int?
            #expect(
                try await eventually {
                    let statistics = server.statistics
                    if statistics.waiting == 0 { connections = statistics.connections }
                    return statistics.waiting == 0
                })
            #expect(connections == 1)
            try await Task.sleep(for: .seconds(5))
            #expect(try await eventually { server.statistics.connections == 0 })
            #expect(client.count(upTo: 16 << 20) < 16 << 20)
        }
    }

    @Test("the last chunk of a stream whose connection is broken ends one wait and no more")
    func brokenEnd() async throws {
        let state = Mutex((streams: [Exchange](), client: RawClient?.none))
        let handlers = Handlers { request, exchange in
            state.withLock { state in
                guard request.target != "/stream" else {
                    state.streams.append(exchange)
                    return .streaming(.text("begin"), heartbeat: .seconds(60))
                }
                // On the loop's thread, so that the loop sends before it sees the reset.
                var reset = linger(l_onoff: 1, l_linger: 0)
                if let client = state.client {
                    setsockopt(
                        client.descriptor, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
                }
                state.client = nil
                Exchange.send(Array("last".utf8), to: state.streams, isLast: true)
                state.streams = []
                return .now(.text("plain"))
            }
        }
        try await withServer(handlers) { server, port in
            let other = try RawClient(port: port)
            for _ in 0..<8 {
                try state.withLock { $0.client = try RawClient(port: port) }
                state.withLock { $0.client?.request("/stream") }
                #expect(try await eventually { server.statistics.waiting == 1 })

                // While libmicrohttpd has pipelined requests, the loop takes its mail without looking for events first.
                other.send(String(repeating: "GET /plain HTTP/1.1\r\nHost: test\r\n\r\n", count: 4))
                for _ in 0..<4 { #expect(other.response()?.body == "plain") }

                #expect(try await eventually { server.statistics.connections == 1 })
                #expect(server.statistics.waiting == 0)
            }
        }
    }
}
