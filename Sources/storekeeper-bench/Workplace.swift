internal import Foundation
internal import Glibc
internal import Synchronization

/// A temporary directory and the processes that are started for the benchmarks; both end with it.
///
/// Servers are started and stopped on the main thread; the signal's queue only ends them.
final class Workplace: Sendable {
    let directory: URL
    /// Where this program and the two that it measures lie.
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

    /// A path that nobody has used.
    func path(_ name: String) -> URL {
        directory.appending(path: "\(lastNumber.add(1, ordering: .relaxed).newValue)-\(name)")
    }

    /// A path that holds this text.
    func file(_ name: String, _ text: String) throws -> URL {
        let file = path(name)
        try Data(text.utf8).write(to: file)
        return file
    }

    /// One of our own programs, built beside this one.
    func binary(_ name: String) throws -> URL {
        let file = binaries.appending(path: name)
        guard FileManager.default.isExecutableFile(atPath: file.path) else {
            throw Failure("\(name) is not built beside this program: swift build -c release")
        }
        return file
    }

    /// A program of the system; nil if it is not installed.
    func installed(_ name: String) -> URL? {
        let places = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (places + ["/usr/sbin", "/usr/bin"]).map { URL(fileURLWithPath: $0).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    func started(_ process: pid_t) { processes.withLock { $0.append(process) } }

    func ended(_ process: pid_t) { processes.withLock { $0.removeAll { $0 == process } } }

    func close() {
        for process in processes.withLock({ $0 }) { kill(process, SIGKILL) }
        // Losing the error is right: it is a temporary directory.
        try? FileManager.default.removeItem(at: directory)
    }

    /// Servers have process groups of their own, so the terminal's interrupt does not reach them.
    private func endProcessesOnInterrupt() {
        for number in [SIGINT, SIGTERM] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { [self] in
                close()
                _exit(130)
            }
            source.activate()
            // It is to live as long as the program.
            _ = Unmanaged.passRetained(source as AnyObject)
        }
    }
}
