internal import Benchmarking
internal import Glibc

/// One blocking connection, for single requests.
final class Connection {
    private let descriptor: Int32

    init(_ port: UInt16) throws {
        guard let descriptor = Loopback.connect(port) else { throw Failure("no process listens on port \(port)") }
        self.descriptor = descriptor
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    static func isOpen(_ port: UInt16) -> Bool {
        guard let descriptor = Loopback.connect(port) else { return false }
        close(descriptor)
        return true
    }

    /// Sends a request.
    func send(_ request: LoadRequest) throws {
        let bytes = request.bytes
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure("the server has closed a connection") }
            sent += count
        }
    }

    /// Waits for an answer: the head, and the body unless the answer is a stream.
    func receive() throws -> (frame: AnswerFrame, body: String) {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            if let frame = AnswerFrame(bytes), bytes.count >= frame.count ?? 0 {
                return (frame, String(decoding: bytes[frame.headCount...], as: UTF8.self))
            }
            let count = recv(descriptor, &piece, piece.count, 0)
            guard count > 0 else { throw Failure("no answer: \(String(decoding: bytes.prefix(200), as: UTF8.self))") }
            bytes += piece[..<count]
        }
    }

    /// Reads and discards the received bytes; returns their number, or nil when the connection has ended.
    func skip() -> Int? {
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count > 0 ? count : nil
    }

    /// Sends a request and returns its answer.
    ///
    /// - Throws: `Failure` for an answer other than 200.
    @discardableResult
    func ask(_ request: LoadRequest) throws -> (frame: AnswerFrame, body: String) {
        try send(request)
        let answer = try receive()
        guard (200...299).contains(answer.frame.status) else {
            throw Failure(
                "\(request.method) \(request.path) was answered \(answer.frame.status): \(answer.body.prefix(300))")
        }
        return answer
    }
}

/// Sockets to and from this machine.
enum Loopback {
    /// A connected socket; nil where no process listens.
    ///
    /// - Parameter source: the last byte of the client's address, so that many connections come from several addresses.
    static func connect(_ port: UInt16, from source: UInt8 = 1) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var isConnected = source == 1 || withAddress(0, source) { bind(descriptor, $0, $1) == 0 }
        isConnected = isConnected && withAddress(port, 1) { Glibc.connect(descriptor, $0, $1) == 0 }
        guard isConnected else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// The address of this machine that ends with `host`, in the system's form.
    static func withAddress<Result>(
        _ port: UInt16, _ host: UInt8, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = (0x7F00_0000 | UInt32(host)).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// Ports for servers that cannot choose a free port and report it.
enum FreePort {
    /// A port that is free at the moment of the call.
    static func find() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = Loopback.withAddress(0, 1) { bind(descriptor, $0, $1) == 0 }
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
        }
        guard isBound, isNamed else { throw Failure("there is no free port") }
        return UInt16(bigEndian: address.sin_port)
    }
}
