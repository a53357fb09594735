internal import FoundationEssentials
internal import Glibc
internal import Synchronization

/// An advisory lock on a file in the directory, which the kernel releases when the process ends for any reason.
final class DirectoryLock: Sendable {
    private let descriptor: Mutex<Int32?>
    private let directory: DataDirectory
    /// The innermost comes first.
    private let madeDirectories: [String]

    init(_ directory: DataDirectory) throws(JournalError) {
        self.directory = directory
        madeDirectories = try directory.make()
        let descriptor = open(directory.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DataDirectory.failure("open", directory.lock) }
        var isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
        // ``holder(of:)`` of another process has the lock for a few microseconds.
        for _ in 0..<3 where !isLocked {
            usleep(10_000)
            isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
        }
        guard isLocked else {
            Glibc.close(descriptor)
            throw JournalError(
                "another process is using the data directory \(directory.path); one store has one process: stop that one, or give this one another --data"
            )
        }
        self.descriptor = Mutex(descriptor)
    }

    /// 0 if the kernel does not tell the process, as outside of its container; nil without one.
    static func holder(of directory: DataDirectory) -> Int32? {
        let descriptor = open(directory.lock, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
        // A system can hide /proc; who it is stays unknown.
        var status = stat()
        guard fstat(descriptor, &status) == 0, let locks = try? String(contentsOfFile: "/proc/locks", encoding: .utf8)
        else { return 0 }
        // A line is "3: FLOCK  ADVISORY  WRITE 16234 fe:00:16228507 0 EOF".
        let holders = locks.split(separator: "\n").map { $0.split(separator: " ") }
            .filter { $0.count > 5 && $0[1] == "FLOCK" && $0[5].hasSuffix(":\(status.st_ino)") }
        return holders.first.flatMap { Int32($0[4]) } ?? 0
    }

    func release() {
        if let descriptor = descriptor.withLock({ $0.take() }) { Glibc.close(descriptor) }
    }

    /// Releases the lock only where the directory was made for it; what else has come into it stays.
    func undo() {
        guard !madeDirectories.isEmpty else { return }
        release()
        // A file that cannot be removed stays: it holds no journal.
        unlink(directory.lock)
        for made in madeDirectories where rmdir(made) != 0 { return }
    }

    deinit {
        release()
    }
}
