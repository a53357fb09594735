internal import ArgumentParser
internal import Glibc
internal import MicroHTTP

struct Health: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask the server at the configured address whether it is ready.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let (descriptor, host) =
            switch try reading.settings.reachablePlace() {
            case .address(let host, let port): (try Self.connect(host: host, port: port), host)
            case .socket(let path, _): (try Self.connect(path: path), "localhost")
            }
        defer { close(descriptor) }
        let request = Array("GET /readyz HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw Failure("the request could not be sent: \(String(cString: strerror(errno)))")
        }
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw Failure("no answer within five seconds") }
        let line = String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        guard line.hasPrefix("HTTP/1.1 200") else { throw Failure("not ready: \(line)") }
        print("ready")
    }

    private static func connect(host: String, port: UInt16) throws -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let address = found else {
            throw Failure("\(host) is not an address")
        }
        defer { freeaddrinfo(found) }
        return try connect(
            address.pointee.ai_addr, address.pointee.ai_addrlen, family: address.pointee.ai_family,
            "\(host) port \(port)")
    }

    private static func connect(path: String) throws -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The settings have been read, so the path fits.
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return try withUnsafePointer(to: address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try connect(
                    $0, socklen_t(MemoryLayout<sockaddr_un>.size), family: AF_UNIX, "the socket \(path)")
            }
        }
    }

    private static func connect(
        _ address: UnsafePointer<sockaddr>, _ size: socklen_t, family: Int32, _ name: String
    ) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure("no socket: \(String(cString: strerror(errno)))") }
        var timeout = timeval(tv_sec: 5, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
        guard Glibc.connect(descriptor, address, size) == 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw Failure("no server listens on \(name): \(reason)")
        }
        return descriptor
    }
}
