internal import Glibc
internal import MicroHTTP
internal import Synchronization

/// A new start of the program in the same process, which the settings and the files of the domain then are read for anew.
///
/// What supervises the process sees nothing of it: the process, its arguments, its environment and its listening sockets stay.
final class Restart: Sendable {
    private enum Wish {
        case none, wanted, forbidden
    }

    private let wish = Mutex(Wish.none)
    /// Throws where the start would be refused.
    let check: @Sendable () async throws -> Void

    init(check: @escaping @Sendable () async throws -> Void) { self.check = check }

    /// Whether the program starts again when the server has stopped.
    var isWanted: Bool { wish.withLock { $0 == .wanted } }

    func ask() { wish.withLock { if $0 == .none { $0 = .wanted } } }

    /// Makes the stop of the server the end of the program, also where a new start is wanted.
    func forbid() { wish.withLock { $0 = .forbidden } }

    /// Begins the program anew by execve(2).
    ///
    /// The call does not return unless the system refuses that.
    ///
    /// - Returns: the reason.
    static func begin() -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        // The name is that of the file which was started, also where the command line has another; a file that is there no
        // more is still open.
        if readlink("/proc/self/exe", &path, path.count - 1) < 0 || access(path, X_OK) != 0 {
            path = Array("/proc/self/exe".utf8CString)
        }
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        // The threads of the pool block signals, and the program would begin with that. An end that is asked for from here on
        // ends the process; a hang-up does not.
        signal(SIGTERM, SIG_DFL)
        signal(SIGINT, SIG_DFL)
        signal(SIGHUP, SIG_IGN)
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        HTTPServer.closeOthersOnExec()
        execv(path, &arguments)
        return String(cString: strerror(errno))
    }
}
