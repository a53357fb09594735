internal import ArgumentParser
internal import Glibc
internal import MicroHTTP

struct Health: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask the server at the configured address whether it is ready.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let place = try reading.settings.reachablePlace()
        let (host, name) =
            switch place {
            case .address(let host, let port): (host, "\(host) port \(port)")
            case .socket(let path, _): ("localhost", "the socket \(path)")
            }
        let descriptor = try place.connect(within: 5)
        guard descriptor >= 0 else {
            throw Failure("no server listens on \(name): \(String(cString: strerror(errno)))")
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
}
