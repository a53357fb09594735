// microhttpd.h includes the socket headers, and the compiler may attribute their declarations to its module.
import CMicroHTTPD
import Glibc

/// A blocking client socket that parses no more HTTP than it needs to find the end of a response.
final class RawClient: Sendable {
    let descriptor: Int32

    /// Connects to a server on this machine.
    ///
    /// - Parameter source: the client's own address; nil leaves it to the system.
    init(port: UInt16, host: String = "127.0.0.1", from source: String? = nil) throws {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0, let list else { throw SocketError(code: errno) }
        defer { freeaddrinfo(list) }
        descriptor = socket(list.pointee.ai_family, Int32(SOCK_STREAM.rawValue), 0)
        if let source {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            inet_pton(AF_INET, source, &address.sin_addr)
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
            }
        }
        guard connect(descriptor, list.pointee.ai_addr, list.pointee.ai_addrlen) == 0 else {
            throw SocketError(code: errno)
        }
        var timeout = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Connects to a Unix socket.
    init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let descriptor = descriptor
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
        }
        guard result == 0 else { throw SocketError(code: errno) }
        var timeout = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    /// Whether a server listens on the port.
    static func canConnect(port: UInt16) -> Bool {
        do {
            _ = try RawClient(port: port)
            return true
        } catch {
            return false
        }
    }

    /// Sends text; returns whether the socket took all of it.
    @discardableResult
    func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Sends a request without body.
    func request(_ target: String, method: String = "GET", fields: String = "") {
        send("\(method) \(target) HTTP/1.1\r\nHost: test\r\n\(fields)\r\n")
    }

    /// Sends text and the end of the input in one segment, where it fits into one.
    func sendLast(_ text: String) {
        var text = text
        // The kernel keeps the text until there is more to send, or the end.
        _ = text.withUTF8 { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | 0x8000) }
        finishSending()
    }

    /// Finishes sending, like `nc -N`.
    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads one byte; returns nil at the end of the connection.
    private func byte() -> UInt8? {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 1 ? byte : nil
    }

    /// Reads the next response: head, and as much body as it declares; returns nil if the connection ends before it.
    func response(hasBody: Bool = true) -> RawResponse? {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            guard let byte = byte() else { return nil }
            head.append(byte)
        }
        let text = String(decoding: head, as: UTF8.self)
        let length = RawResponse(head: text, body: "").field("content-length").flatMap { Int($0) } ?? 0
        return RawResponse(head: text, body: String(decoding: hasBody ? bytes(length) : [], as: UTF8.self))
    }

    /// Reads everything up to the end of the connection.
    func rest() -> String {
        var bytes: [UInt8] = []
        while let byte = byte() { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads a chunk with its framing; empty for the last one, nil where the connection ends or the framing is wrong.
    func chunk() -> [UInt8]? {
        var line: [UInt8] = []
        while !line.suffix(2).elementsEqual("\r\n".utf8) {
            guard let byte = byte() else { return nil }
            line.append(byte)
        }
        guard let count = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16) else { return nil }
        let content = bytes(count)
        guard content.count == count, bytes(2) == Array("\r\n".utf8) else { return nil }
        return content
    }

    /// Reads the chunks up to the last one; nil where the connection ends before it.
    func chunks() -> String? {
        var all: [UInt8] = []
        while let chunk = chunk() {
            if chunk.isEmpty { return String(decoding: all, as: UTF8.self) }
            all += chunk
        }
        return nil
    }

    /// The head of the next response; nil at the end of the connection.
    func head() -> String? {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            guard let byte = byte() else { return nil }
            head.append(byte)
        }
        return String(decoding: head, as: UTF8.self)
    }

    /// Reads and drops up to `most` bytes; returns how many it has read.
    func count(upTo most: Int) -> Int {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var count = 0
        while count < most {
            let came = recv(descriptor, &buffer, min(buffer.count, most - count), 0)
            guard came > 0 else { break }
            count += came
        }
        return count
    }

    /// Reads `most` bytes, or fewer if the connection ends before.
    func bytes(_ most: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
            while count < most {
                let came = recv(descriptor, buffer.baseAddress.map { $0 + count }, most - count, 0)
                guard came > 0 else { break }
                count += came
            }
        }
    }

    /// Whether the server has closed the connection; waits until it sends or closes.
    func isAtEnd() -> Bool { byte() == nil }
}

struct SocketError: Error {
    let code: Int32
}

struct RawResponse {
    let head: String
    let body: String

    var status: Int {
        Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0
    }

    func field(_ name: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == name.lowercased() else { continue }
            return String(parts[1].drop { $0 == " " })
        }
        return nil
    }
}
