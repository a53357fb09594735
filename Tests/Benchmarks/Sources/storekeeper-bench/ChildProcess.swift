internal import Benchmarking
internal import Foundation
internal import Glibc

/// A process that this program has started, with the system's figures about it.
struct ChildProcess {
    let name: String
    private let process: Process
    private let output: URL
    private let workplace: Workplace
    private let ending: Ending

    /// How a process has to end after SIGTERM.
    enum Ending {
        /// With exit code 0.
        case inOrder
        /// In any way: some servers of others die of the signal.
        case anyhow
    }

    var id: pid_t { process.processIdentifier }

    /// Starts a program; its output goes to a file.
    init(
        _ program: URL, _ arguments: [String], in workplace: Workplace, environment: [String: String] = [:],
        ending: Ending = .inOrder
    ) throws {
        self.workplace = workplace
        self.ending = ending
        name = program.lastPathComponent
        output = workplace.path(name + ".log")
        try Data().write(to: output)
        let handle = try FileHandle(forWritingTo: output)
        process = Process()
        process.executableURL = program
        process.arguments = arguments
        // Settings in the caller's environment would change the measurement.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("STOREKEEPER_") }
            .merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = handle
        process.standardError = handle
        try process.run()
        workplace.started(process.processIdentifier)
    }

    /// The output so far; empty where an interrupt has removed the file with its directory.
    var text: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }

    /// Waits until a closure returns a value.
    func awaiting<Value>(_ what: String, seconds: Double = 60, _ value: () -> Value?) throws -> Value {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            if let value = value() { return value }
            guard process.isRunning else { throw Failure("\(name) ended before \(what): \(text.suffix(500))") }
            guard .now < end else { throw Failure("\(name): no \(what) within \(seconds) s: \(text.suffix(500))") }
            usleep(500)
        }
    }

    /// CPU time so far, user and system, of all of its threads, in microseconds.
    ///
    /// It reads the CPU clock of the process, in nanoseconds; `/proc/<pid>/stat` counts hundredths of a second.
    var cpuMicroseconds: Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(id, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .nan }
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    var residentKiB: Double {
        // A process that has ended uses no memory; the caller notices its end by the missing answers.
        let status = (try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)) ?? ""
        return Facts.kibibytes("VmRSS", in: status) ?? .nan
    }

    /// Sends SIGTERM and waits for the end of the process.
    func stop() throws {
        process.terminate()
        let end = ContinuousClock.now + .seconds(30)
        while process.isRunning {
            guard .now < end else {
                kill()
                throw Failure("\(name) did not end within 30 s of SIGTERM")
            }
            usleep(1000)
        }
        workplace.ended(id)
        switch ending {
        case .anyhow: break
        case .inOrder: try requireSuccess()
        }
    }

    /// Ends the process by SIGKILL.
    func kill() {
        Glibc.kill(id, SIGKILL)
        process.waitUntilExit()
        workplace.ended(id)
    }

    /// Waits for the end of the process and returns its output.
    func finish() throws -> String {
        process.waitUntilExit()
        workplace.ended(id)
        try requireSuccess()
        return text
    }

    private func requireSuccess() throws {
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw Failure("\(name) ended with \(process.terminationStatus): \(text.suffix(500))")
        }
    }
}
