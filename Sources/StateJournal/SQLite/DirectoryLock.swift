internal import Glibc
internal import Synchronization

/// The right to be the only process that writes to a data directory.
///
/// It is an advisory lock on a file in the directory, which the kernel releases when the process ends for any reason.
final class DirectoryLock: Sendable {
    private let descriptor: Mutex<Int32?>

    /// Makes the directory where there is none, and takes the lock.
    ///
    /// - Throws: ``JournalError`` when another process has the lock, or the directory cannot be made.
    init(_ directory: DataDirectory) throws(JournalError) {
        try directory.make()
        let descriptor = open(directory.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DataDirectory.failure("open", directory.lock) }
        var isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
        // ``isTaken(_:)`` of another process has the lock for a few microseconds.
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

    /// Whether another process has the lock of a directory; false where there is no lock file.
    static func isTaken(_ directory: DataDirectory) -> Bool {
        let descriptor = open(directory.lock, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    /// Releases the lock; a second call does nothing.
    func release() {
        if let descriptor = descriptor.withLock({ $0.take() }) { Glibc.close(descriptor) }
    }

    deinit {
        release()
    }
}
