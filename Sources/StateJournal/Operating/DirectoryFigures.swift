internal import Glibc

package struct DirectoryFigures: Sendable {
    /// Nil where the file system does not say.
    package let freeBytes: Int?
    /// Seconds since 1970; nil where no backup is known.
    package let backupTime: Int?

    package init(_ path: String) {
        freeBytes = DataDirectory(path: path).room
        var status = stat()
        backupTime = stat(Self.mark(in: path), &status) == 0 ? status.st_mtim.tv_sec : nil
    }

    /// Where the directory cannot be written, the time stays: the backup is none the worse.
    package static func noteBackup(of path: String) {
        let descriptor = open(mark(in: path), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        futimens(descriptor, nil)
        close(descriptor)
    }

    private static func mark(in path: String) -> String { path + "/backup" }
}
