internal import Foundation
internal import Glibc
internal import Synchronization

/// The temporary directory and the processes of the benchmarks; it removes and ends them at its end.
///
/// Threads: the main thread starts and stops servers; the queue of the interrupt only kills them.
final class Workplace: Sendable {
    let directory: URL
    /// The directory of this program, and of the server and the C program that are built with it.
    let binaries: URL
    private let processes = Mutex<[pid_t]>([])
    private let lastNumber = Atomic(0)

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "storekeeper-bench-\(getpid())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        binaries = URL(fileURLWithPath: own).deletingLastPathComponent()
        endProcessesOnInterrupt()
    }

    /// A new path in the directory.
    func path(_ name: String) -> URL {
        directory.appending(path: "\(lastNumber.add(1, ordering: .relaxed).newValue)-\(name)")
    }

    /// Writes a file and returns its path.
    func file(_ name: String, _ text: String) throws -> URL {
        let file = path(name)
        try Data(text.utf8).write(to: file)
        return file
    }

    /// The path of a program that is built with this one.
    func binary(_ name: String) throws -> URL {
        let file = binaries.appending(path: name)
        guard FileManager.default.isExecutableFile(atPath: file.path) else {
            throw Failure("\(name) is not beside this program")
        }
        return file
    }

    /// The path of a program of the system; nil where it is not installed.
    func installed(_ name: String) -> URL? {
        let places = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (places + ["/usr/sbin", "/usr/bin"]).map { URL(fileURLWithPath: $0).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    func started(_ process: pid_t) { processes.withLock { $0.append(process) } }

    func ended(_ process: pid_t) { processes.withLock { $0.removeAll { $0 == process } } }

    func close() {
        for process in processes.withLock({ $0 }) { kill(process, SIGKILL) }
        // The system removes temporary directories, so a failure here may be ignored.
        try? FileManager.default.removeItem(at: directory)
    }

    /// Kills the servers at an interrupt: they have process groups of their own, so the terminal's signal does not reach them.
    private func endProcessesOnInterrupt() {
        for number in [SIGINT, SIGTERM] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { [self] in
                close()
                _exit(130)
            }
            source.activate()
            // The source has to live as long as the program.
            _ = Unmanaged.passRetained(source as AnyObject)
        }
    }
}
