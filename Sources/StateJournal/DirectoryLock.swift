internal import Glibc

/// The right to be the only process that writes to a data directory.
///
/// An advisory lock on a file in it: the kernel releases it when the process ends, however it ends.
final class DirectoryLock: Sendable {
    private let descriptor: Int32

    /// Takes the lock.
    ///
    /// - Throws: ``JournalError`` when another process has it.
    init(directory: String) throws(JournalError) {
        let path = directory + "/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw JournalError("cannot open \(path): \(String(cString: strerror(errno)))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw JournalError(
                "another process is using the data directory \(directory); one store has one process: stop that one, or give this one another --data"
            )
        }
    }

    deinit {
        close(descriptor)
    }
}
