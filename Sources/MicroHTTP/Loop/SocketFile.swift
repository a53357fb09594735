// microhttpd.h includes the socket headers, and the compiler attributes their declarations to its module.
import CMicroHTTPD
import Glibc

/// The file of a Unix socket on which a server listens.
struct SocketFile {
    private let path: String
    /// The identity of the file, which another server's at the same path does not have.
    private let device: dev_t
    private let inode: ino_t

    /// Notes the file of a socket; nil where the path has none.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, Self.isSocket(status) else { return nil }
        (self.path, device, inode) = (path, status.st_dev, status.st_ino)
    }

    /// Removes the file, unless another server has replaced it.
    func remove() {
        guard let present = SocketFile(path: path), present.device == device, present.inode == inode else { return }
        // A file that stays is replaced by the next start, so a failure needs no word.
        unlink(path)
    }

    /// Makes a socket that listens at a path, in place of the file of a server that has ended without removing it.
    static func listen(at path: String, mode: UInt32) throws(ServerError) -> Int32 {
        guard var address = socketAddress(of: path) else {
            throw .socketUnusable(path: path, reason: "expected a path of 1 to 107 bytes")
        }
        try removeStaleFile(at: path, &address)
        let flags = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(AF_UNIX, Int32(flags), 0)
        guard descriptor >= 0 else { throw .socketUnusable(path: path, reason: ServerError.words(for: errno)) }
        // A client can connect after the last of the three, so it never meets other permissions.
        guard withSocketAddress(&address, { bind(descriptor, $0, $1) }) == 0, chmod(path, mode_t(mode)) == 0,
            Glibc.listen(descriptor, 4096) == 0
        else {
            let code = errno
            Glibc.close(descriptor)
            throw code == EADDRINUSE
                ? .socketInUse(path: path) : .socketUnusable(path: path, reason: ServerError.words(for: code))
        }
        return descriptor
    }

    /// Removes the file of a server that has ended.
    ///
    /// Two servers that start at the same time could each take the other's new file for such a file; the lock of the
    /// journal keeps two servers from one data directory, and nothing keeps them from one path.
    private static func removeStaleFile(at path: String, _ address: inout sockaddr_un) throws(ServerError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard isSocket(status) else {
            throw .socketUnusable(path: path, reason: "a file that is not a socket is there")
        }
        let trial = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard trial >= 0 else { throw .socketUnusable(path: path, reason: ServerError.words(for: errno)) }
        defer { Glibc.close(trial) }
        // Only a socket that no process listens on refuses; a full backlog, for example, is that of a live server.
        let isRefused = withSocketAddress(&address, { connect(trial, $0, $1) }) != 0 && errno == ECONNREFUSED
        guard isRefused else { throw .socketInUse(path: path) }
        guard unlink(path) == 0 || errno == ENOENT else {
            throw .socketUnusable(path: path, reason: ServerError.words(for: errno))
        }
    }

    private static func isSocket(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFSOCK }

    private static func socketAddress(of path: String) -> sockaddr_un? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard !bytes.isEmpty, bytes.count < capacity, !bytes.contains(0) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return address
    }

    private static func withSocketAddress(
        _ address: inout sockaddr_un, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
