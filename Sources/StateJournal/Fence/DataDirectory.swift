// FoundationEssentials lacks the descriptions of file system errors.
internal import Foundation
internal import Glibc
internal import StateStore
internal import Synchronization

struct DataDirectory: Sendable {
    let path: String

    var journal: String { path + "/journal.sqlite" }
    /// A process that is killed leaves it, and the next draft removes it.
    var draft: String { path + "/draft.sqlite" }
    /// A start completes the replacement by this whole journal.
    var replacement: String { path + "/replacement.sqlite" }
    var fence: String { path + "/fence" }
    var lock: String { path + "/lock" }

    static let companions = ["-wal", "-shm"]

    /// For this user only; a directory that exists keeps its permissions.
    @discardableResult
    func make() throws(JournalError) -> [String] {
        var missing: [String] = []
        var place = URL(fileURLWithPath: path)
        while !FileManager.default.fileExists(atPath: place.path), place.path != "/" {
            missing.append(place.path)
            place.deleteLastPathComponent()
        }
        guard !missing.isEmpty else { return [] }
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw JournalError("cannot make the data directory \(path): \(error.localizedDescription)")
        }
        try sync(URL(fileURLWithPath: path).deletingLastPathComponent().path)
        return missing
    }

    /// Only this user can read it.
    func touch(_ file: String) throws(JournalError) {
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure("make", file) }
        Glibc.close(descriptor)
    }

    func removeDraft() throws(JournalError) {
        for suffix in ["-journal"] + Self.companions + [""] { try remove(draft + suffix) }
    }

    func size(_ file: String) -> Int? {
        var status = stat()
        return stat(file, &status) == 0 ? Int(status.st_size) : nil
    }

    var room: Int? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        // A file system without a bound may name the largest number.
        let (bytes, isTooLarge) = Int(clamping: status.f_bavail).multipliedReportingOverflow(
            by: Int(clamping: status.f_frsize))
        return isTooLarge ? .max : bytes
    }

    func rename(_ file: String, to other: String) throws(JournalError) {
        guard Glibc.rename(file, other) == 0 else { throw Self.failure("rename", file) }
    }

    func remove(_ file: String) throws(JournalError) {
        guard unlink(file) == 0 || errno == ENOENT else { throw Self.failure("remove", file) }
    }

    func sync(_ file: String) throws(JournalError) {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        defer { if descriptor >= 0 { Glibc.close(descriptor) } }
        guard descriptor >= 0, fsync(descriptor) == 0 else { throw Self.failure("write to the disk", file) }
    }

    static func failure(_ doing: String, _ file: String) -> JournalError {
        let reason = errno
        var status = stat()
        let isOfAnother = [EACCES, EPERM].contains(reason) && stat(file, &status) == 0 && status.st_uid != geteuid()
        let users =
            isOfAnother ? "; it belongs to the user \(status.st_uid), and this process is of the user \(geteuid())" : ""
        return JournalError(
            "cannot \(doing) \(file): \(String(cString: strerror(reason)))\(users)",
            kind: [ENOSPC, EDQUOT].contains(reason) ? .noRoom : .other)
    }
}

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
