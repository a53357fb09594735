// microhttpd.h includes the socket headers, and the compiler attributes their declarations to its module.
import CMicroHTTPD
import Glibc

struct SocketFile {
    private let path: String
    /// Tells the file from another server's at the same path.
    private let device: dev_t
    private let inode: ino_t

    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, Self.isSocket(status) else { return nil }
        (self.path, device, inode) = (path, status.st_dev, status.st_ino)
    }

    /// Another server's file at the path stays.
    func remove() {
        guard let present = SocketFile(path: path), present.device == device, present.inode == inode else { return }
        // A file that stays is replaced by the next start, so a failure needs no word.
        unlink(path)
    }

    /// Replaces the file of a server that has ended without removing it.
    static func listen(at path: String, mode: UInt32) throws(ServerError) -> Int32 {
        guard let address = SocketAddress(path: path) else {
            throw .socketUnusable(path: path, reason: "expected a path of 1 to 107 bytes")
        }
        let place = ListeningPlace.socket(path: path, mode: mode)
        try removeStaleFile(at: path, address, place)
        let descriptor = SocketAddress.socket(of: AF_UNIX)
        guard descriptor >= 0 else { throw place.fault(errno) }
        // A client can connect after the last of the three, so it never meets other permissions.
        guard address.with({ bind(descriptor, $0, $1) }) == 0, chmod(path, mode_t(mode)) == 0,
            Glibc.listen(descriptor, 4096) == 0
        else {
            let code = errno
            Glibc.close(descriptor)
            throw place.fault(code)
        }
        return descriptor
    }

    /// Two servers that start at the same time could each take the other's new file for a stale one; nothing keeps two
    /// servers from one path.
    private static func removeStaleFile(
        at path: String, _ address: SocketAddress, _ place: ListeningPlace
    ) throws(ServerError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard isSocket(status) else {
            throw .socketUnusable(path: path, reason: "a file that is not a socket is there")
        }
        let trial = SocketAddress.socket(of: AF_UNIX)
        guard trial >= 0 else { throw place.fault(errno) }
        defer { Glibc.close(trial) }
        // Only a socket that no process listens on refuses; a full backlog, for example, is that of a live server.
        let isRefused = address.with { connect(trial, $0, $1) } != 0 && errno == ECONNREFUSED
        guard isRefused else { throw .socketInUse(path: path) }
        guard unlink(path) == 0 || errno == ENOENT else { throw place.fault(errno) }
    }

    private static func isSocket(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFSOCK }
}
