internal import Glibc

/// Looks at a file for a new content, as an editor saves it: in place, or as another file under its name.
struct FileWatch {
    private struct Look: Equatable {
        var inode: UInt
        var size: Int
        var seconds: Int
        var nanoseconds: Int

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            (inode, size) = (UInt(status.st_ino), Int(status.st_size))
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        }
    }

    private let path: String
    private var taken: Look?
    private var last: Look?

    init(_ path: String) {
        self.path = path
        taken = Look(path)
        last = taken
    }

    /// Whether the file is another one than at the last change, and the same as at the look before: its writer is done.
    mutating func hasChanged() -> Bool {
        let now = Look(path)
        defer { last = now }
        guard let now, now == last, now != taken else { return false }
        taken = now
        return true
    }
}
