import CCurl
import Foundation
import Glibc
import Synchronization
import Testing

@testable import HTTPClient

/// What a server had of a request when it went away, of which the client must not say that the server has none of it.
@Suite("Connections that end before the answer")
struct LostConnectionTests {
    private static func report(_ failure: HTTPConnection.Failure?) {
        Issue.record("the outcome is \(String(describing: failure))")
    }

    @Test("a request is sent once, although the server has closed a connection that was used before")
    func isSentOnce() throws {
        let server = try ClosingServer(staysThere: true)
        let client = try HTTPConnection()
        _ = try client.perform(server.request)

        let failure = #expect(throws: HTTPConnection.Failure.self) { try client.perform(server.request) }

        guard case .disconnected = failure else { return Self.report(failure) }
        #expect(server.received == 2)
    }

    @Test("a server that has a request and is gone is not one that was not reached")
    func isNotUnreachable() throws {
        let server = try ClosingServer(staysThere: false)
        let client = try HTTPConnection()
        _ = try client.perform(server.request)

        let failure = #expect(throws: HTTPConnection.Failure.self) { try client.perform(server.request) }

        guard case .disconnected = failure else { return Self.report(failure) }
        #expect(server.received == 2)
    }

    @Test("a request that libcurl does not take is answered", .timeLimit(.minutes(5)))
    func refusedHandle() async throws {
        var curl = try Transfer.open()
        curl.multi_add_handle = { _, _ in CURLM_OUT_OF_MEMORY }
        let pool = try HTTPPool(requestsMax: 1, curl)
        Thread.detachNewThread { pool.run() }
        defer { pool.stop() }

        for _ in 0..<2 {
            let outcome = await withCheckedContinuation { done in
                pool.send(.init("http://127.0.0.1:1/", within: .seconds(3600), bodyBytesMax: 1)) {
                    true
                } then: {
                    done.resume(returning: $0)
                }
            }
            #expect(outcome.isUnreachable)
        }
    }

    @Test("a pool sends a request once as well, and carries out the next one")
    func pool() async throws {
        let server = try ClosingServer(staysThere: true)
        let pool = try HTTPPool(requestsMax: 1)
        Thread.detachNewThread { pool.run() }
        defer { pool.stop() }
        // On a busy machine a pool may give up a connection; such a request has not been sent.
        func outcome() async -> HTTPPool.Outcome {
            var outcome: HTTPPool.Outcome
            var attemptsCount = 0
            repeat {
                attemptsCount += 1
                outcome = await withCheckedContinuation { done in
                    pool.send(server.request) {
                        true
                    } then: {
                        done.resume(returning: $0)
                    }
                }
            } while outcome.isUnreachable && attemptsCount < 20
            return outcome
        }

        let outcomes = [await outcome(), await outcome(), await outcome()]

        #expect(try outcomes[0].get().status == 200)
        guard case .failure(.disconnected) = outcomes[1] else {
            Issue.record("the outcome is \(outcomes[1])")
            return
        }
        #expect(try outcomes[2].get().status == 200)
        #expect(server.received == 3)
    }

    @Test("an answer that is cut off anywhere is none")
    func cut() throws {
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody".utf8)
        for count in 0..<answer.count {
            let server = try ClosingServer(staysThere: true, sends: Array(answer.prefix(count)))
            let client = try HTTPConnection()
            _ = try client.perform(server.request)

            let failure = #expect(throws: HTTPConnection.Failure.self, "\(count) bytes") {
                try client.perform(server.request)
            }

            guard case .disconnected = failure else { return Self.report(failure) }
        }
    }

    @Test("an answer whose lines end with line feeds alone is one")
    func lineFeeds() throws {
        let answer = "HTTP/1.1 200 OK\nContent-Length: 4\n\nbody"
        let server = try ClosingServer(staysThere: true, sends: Array(answer.utf8))
        let client = try HTTPConnection()
        _ = try client.perform(server.request)

        #expect(try client.perform(server.request).body == Array("body".utf8))
    }

    @Test(
        "a pause that 64 bits do not hold is the longest one",
        arguments: [
            ("3", 3), ("9223372036854775807", 3600), ("9223372036854775808", 3600), ("99999999999999999999", 3600),
            ("00000000000000000003", 3), ("soon", 0), ("", 0),
        ])
    func pauses(text: String, secondsOfHour: Int) throws {
        let answer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: \(text)\r\nContent-Length: 0\r\n\r\n"
        let server = try ClosingServer(staysThere: true, sends: Array(answer.utf8))
        let client = try HTTPConnection()
        _ = try client.perform(server.request)

        #expect(try min(client.perform(server.request).retryAfter, 3600) == secondsOfHour)
    }

    @Test("a server that was never reached is unreachable")
    func unreachable() throws {
        let server = try ClosingServer(staysThere: false)
        let client = try HTTPConnection()
        _ = try client.perform(server.request)
        _ = try? client.perform(server.request)

        let failure = #expect(throws: HTTPConnection.Failure.self) { try client.perform(server.request) }

        guard case .unreachable = failure else { return Self.report(failure) }
    }
}

extension HTTPPool.Outcome {
    fileprivate var isUnreachable: Bool { if case .failure(.unreachable) = self { true } else { false } }
}

/// A server that answers the odd ones of the requests, and closes the connection when it has read an even one.
private final class ClosingServer: Sendable {
    let request: HTTPConnection.Request
    private let count = Mutex(0)

    /// How many requests it has read.
    var received: Int { count.withLock { $0 } }

    /// - Parameters:
    ///   - staysThere: whether it takes connections after it has closed one.
    ///   - beginning: what it sends before it closes one.
    init(staysThere: Bool, sends beginning: [UInt8] = []) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(listener, $0, size)
                _ = listen(listener, 8)
                _ = getsockname(listener, $0, &size)
            }
        }
        var request = HTTPConnection.Request(
            "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/", within: .seconds(10), bodyBytesMax: 100)
        request.method = "POST"
        request.body = Array("body".utf8)
        self.request = request
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                var bytes = [UInt8](repeating: 0, count: 1000)
                while case let length = recv(connection, &bytes, bytes.count, 0), length > 0 {
                    // The body may come behind the head.
                    guard bytes.starts(with: Array("POST ".utf8)) else { continue }
                    let number = count.withLock { count in
                        count += 1
                        return count
                    }
                    guard !number.isMultiple(of: 2) else {
                        _ = send(connection, beginning, beginning.count, Int32(MSG_NOSIGNAL))
                        break
                    }
                    let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
                    _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
                }
                if !staysThere { close(listener) }
                close(connection)
                // Its number may be that of another server's listener from now on.
                if !staysThere { return }
            }
        }
    }
}
