internal import Glibc
internal import Synchronization

/// The right to be the only process that writes to a data directory.
///
/// It is an advisory lock on a file in the directory, which the kernel releases when the process ends for any reason.
final class DirectoryLock: Sendable {
    private let descriptor: Mutex<Int32?>
    private let directory: DataDirectory
    /// The directories that were made for the lock, the innermost first.
    private let madeDirectories: [String]

    /// Makes the directory where there is none, and takes the lock.
    ///
    /// - Throws: ``JournalError`` when another process has the lock, or the directory cannot be made.
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
        let line = Array("\(getpid())\n".utf8)
        // On a full disk, who has the lock stays unknown.
        if ftruncate(descriptor, 0) == 0 { pwrite(descriptor, line, line.count, 0) }
        self.descriptor = Mutex(descriptor)
    }

    /// The ID of the process that has the lock of a directory, 0 where it has not written it; nil where none has the lock.
    static func holder(of directory: DataDirectory) -> Int32? {
        let descriptor = open(directory.lock, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = max(0, pread(descriptor, &bytes, bytes.count, 0))
        return Int32(String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)) ?? 0
    }

    /// Releases the lock; a second call does nothing.
    func release() {
        if let descriptor = descriptor.withLock({ $0.take() }) { Glibc.close(descriptor) }
    }

    /// Where the directory was made for the lock, releases the lock and removes what was made, as far as nothing else has
    /// come into it.
    func undo() {
        guard !madeDirectories.isEmpty else { return }
        release()
        // What cannot be removed stays: it holds no journal.
        unlink(directory.lock)
        for made in madeDirectories where rmdir(made) != 0 { return }
    }

    deinit {
        release()
    }
}
