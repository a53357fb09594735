internal import Benchmarking
internal import Foundation
internal import Glibc

/// A process that this program has started, and what the system knows of it.
struct ChildProcess {
    let name: String
    private let process: Process
    private let output: URL
    private let workplace: Workplace
    private let ending: Ending

    /// How a process has to end when it is asked to.
    enum Ending {
        /// With exit code 0.
        case inOrder
        /// As it likes: not ours, and some die of the signal.
        case anyhow
    }

    var id: pid_t { process.processIdentifier }

    /// Starts a program; what it prints goes to a file.
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
        // Settings of the caller's shell would change what is measured.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("STOREKEEPER_") }
            .merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = handle
        process.standardError = handle
        try process.run()
        workplace.started(process.processIdentifier)
    }

    /// What it has printed so far; nothing if its file has gone, as the whole directory does at an interrupt.
    var text: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }

    /// Waits until this has a value.
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
    /// The process's own clock, which counts nanoseconds where `/proc/<pid>/stat` counts hundredths of a second.
    var cpuMicroseconds: Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(id, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .nan }
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    var residentKiB: Double {
        // A process that has gone has no memory; whoever asked will see that it does not answer.
        let status = (try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)) ?? ""
        return Facts.kibibytes("VmRSS", in: status) ?? .nan
    }

    /// Asks it to end and waits until it has.
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

    /// Ends it as a power cut would.
    func kill() {
        Glibc.kill(id, SIGKILL)
        process.waitUntilExit()
        workplace.ended(id)
    }

    /// Waits until it has ended by itself and returns what it has printed.
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
