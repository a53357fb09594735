internal import ArgumentParser
internal import Glibc
internal import StateServer

/// `storekeeper health`: exits with code 0 when the server at the configured address is ready, for container health
/// checks.
struct Health: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask the server at the configured address whether it is ready.")

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        do {
            let address = try await options.read().settings.reachableAddress()
            let line = try Self.statusLine(of: "/readyz", host: address.host, port: address.port)
            guard line.hasPrefix("HTTP/1.1 200") else { throw Failure("not ready: \(line)") }
            print("ready")
        } catch {
            throw Failure("\(error)")
        }
    }

    /// Sends a GET request and returns the status line of the response; waits at most five seconds for it.
    private static func statusLine(of path: String, host: String, port: UInt16) throws -> String {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let address = found else {
            throw Failure("\(host) is not an address")
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(
            address.pointee.ai_family, address.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure("no socket: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var timeout = timeval(tv_sec: 5, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
        guard connect(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0 else {
            throw Failure("no server listens on \(host) port \(port): \(String(cString: strerror(errno)))")
        }
        let request = Array("GET \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw Failure("the request could not be sent: \(String(cString: strerror(errno)))")
        }
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw Failure("no answer within five seconds") }
        return String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    }
}
