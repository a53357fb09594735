internal import Glibc
internal import MicroHTTP
internal import Synchronization

/// A new start of the program in the same process, which the settings and the files of the domain then are read for anew.
///
/// A supervisor of the process sees nothing of it: the process, its arguments, its environment and its listening sockets stay.
final class Restart: Sendable {
    private enum Wish {
        case none, wanted, forbidden
    }

    private let wish = Mutex(Wish.none)
    /// The file of the domain that the new start takes, whatever is in its place by then.
    private let kept = Mutex<[UInt8]>([])
    /// The kind of that file, such as `model`.
    let file: String
    let check: @Sendable () async throws -> Void

    init(of file: String, check: @escaping @Sendable () async throws -> Void) {
        (self.file, self.check) = (file, check)
    }

    var isWanted: Bool { wish.withLock { $0 == .wanted } }

    /// Asks for it; a second call changes nothing.
    func ask(keeping file: [UInt8]) {
        wish.withLock { wish in
            guard wish == .none else { return }
            wish = .wanted
            keep(file)
        }
    }

    func keep(_ file: [UInt8]) { kept.withLock { $0 = file } }

    /// Makes the stop of the server the end of the program, also where a new start is wanted.
    func forbid() { wish.withLock { $0 = .forbidden } }

    /// Begins the program anew by execve(2).
    ///
    /// The call does not return unless the system refuses that.
    func begin() -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        // The name is that of the file which was started, also where the command line has another; a file that is there no
        // more is still open.
        if readlink("/proc/self/exe", &path, path.count - 1) < 0 || access(path, X_OK) != 0 {
            path = Array("/proc/self/exe".utf8CString)
        }
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        // The threads of the pool block all signals, and the program begins with what is blocked: those of `ProcessSignals`,
        // which wait for it.
        var waiting = ProcessSignals.set
        pthread_sigmask(SIG_SETMASK, &waiting, nil)
        HTTPServer.closeOthersOnExec()
        KeptFile.keep(kept.withLock(\.self))
        execv(path, &arguments)
        return String(cString: strerror(errno))
    }
}

/// A file that a program leaves to the one that it goes on with in the same process, in memory.
enum KeptFile {
    /// The variable with the process and the descriptor.
    private static let variable = "KEPT_DOMAIN_FILE"

    /// Leaves a file; where the system has no room for it, the next program reads its own.
    static func keep(_ bytes: [UInt8]) {
        let name = "/storekeeper-\(getpid())"
        let descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else { return }
        shm_unlink(name)
        guard write(descriptor, bytes, bytes.count) == bytes.count else { return }
        _ = fcntl(descriptor, F_SETFD, 0)
        setenv(variable, "\(getpid()),\(descriptor)", 1)
    }

    private static let isTaken = Atomic(false)
    static var wasTaken: Bool { isTaken.load(ordering: .relaxed) }

    static func take() -> [UInt8]? {
        let numbers = getenv(variable).map { String(cString: $0).split(separator: ",").compactMap { Int32($0) } } ?? []
        guard numbers.count == 2, numbers[0] == getpid() else { return nil }
        unsetenv(variable)
        defer { close(numbers[1]) }
        var status = stat()
        guard fstat(numbers[1], &status) == 0, status.st_size > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        guard pread(numbers[1], &bytes, bytes.count, 0) == bytes.count else { return nil }
        isTaken.store(true, ordering: .relaxed)
        return bytes
    }
}

extension StateServer {
    /// The file of the domain that the program before has left, where it has started again in the same process.
    ///
    /// Any other start, and a second call, returns nil.
    package static func takeKeptFile() -> [UInt8]? { KeptFile.take() }
}
