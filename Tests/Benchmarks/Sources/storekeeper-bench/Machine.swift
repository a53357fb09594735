internal import Benchmarking
internal import Foundation
internal import Glibc

/// The facts about the machine for a report.
enum Machine {
    static func facts(_ workplace: Workplace) -> [Report.Fact] {
        var facts = [
            Report.Fact("date", ISO8601DateFormatter().string(from: Date())),
            Report.Fact("CPU", Facts.value("model name", in: text("/proc/cpuinfo")) ?? "unknown"),
            Report.Fact("cores", "\(ProcessInfo.processInfo.activeProcessorCount)"),
            Report.Fact("memory", memory),
            Report.Fact("kernel", text("/proc/sys/kernel/osrelease")),
            Report.Fact("system", Facts.value("PRETTY_NAME", in: text("/etc/os-release")) ?? "unknown"),
            Report.Fact("sync", "\((syncMicroseconds(workplace) ?? .nan).readable) us for 4 KiB, median of 200"),
        ]
        if let commit = output(workplace, "git", ["-C", workplace.binaries.path, "describe", "--always", "--dirty"]) {
            facts.append(Report.Fact("commit", commit))
        }
        // Where the program is not built, the first scenario fails with a sentence.
        if let limit = try? workplace.binary("microhttpd-limit"),
            let versions = output(workplace, limit, ["--version"])
        {
            facts.append(Report.Fact("libraries", versions))
        }
        for (name, arguments) in [
            ("swift", ["--version"]), ("wrk", ["-v"]), ("nginx", ["-v"]), ("redis-server", ["-v"]), ("node", ["-v"]),
        ] {
            if let version = output(workplace, name, arguments) { facts.append(Report.Fact(name, version)) }
        }
        return facts
    }

    private static var memory: String {
        "\(((Facts.kibibytes("MemTotal", in: text("/proc/meminfo")) ?? 0) / 1_048_576).fixed(0)) GiB"
    }

    /// The time to write and sync one page, the lower bound of a durable action.
    private static func syncMicroseconds(_ workplace: Workplace) -> Double? {
        let descriptor = open(workplace.path("sync").path, O_CREAT | O_RDWR, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let page = [UInt8](repeating: 1, count: 4096)
        let times = (0..<200).map { index -> Double in
            let begun = ContinuousClock.now
            pwrite(descriptor, page, page.count, index * page.count)
            fdatasync(descriptor)
            return begun.duration(to: .now) / .microseconds(1)
        }
        return times.median
    }

    /// The text of a file below /proc or /etc; empty where the file is missing.
    private static func text(_ path: String) -> String {
        ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").trimmingCharacters(in: .newlines)
    }

    private static func output(_ workplace: Workplace, _ program: String, _ arguments: [String]) -> String? {
        workplace.installed(program).flatMap { output(workplace, $0, arguments) }
    }

    /// The first line that a program prints; nil where the program does not start, and the report then lacks a version.
    ///
    /// Some programs end with an error after they have printed their version.
    private static func output(_ workplace: Workplace, _ program: URL, _ arguments: [String]) -> String? {
        guard let process = try? ChildProcess(program, arguments, in: workplace) else { return nil }
        _ = try? process.finish()
        return process.text.split(separator: "\n").first.map(String.init)
    }
}
