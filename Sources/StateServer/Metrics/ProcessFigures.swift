internal import FoundationEssentials
internal import Glibc

enum ProcessFigures {
    /// The cost before Linux 6.2 is O(n) in the number of open files; a figure that /proc does not tell is left out.
    static func text() -> [UInt8] {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let time = seconds(usage.ru_utime) + seconds(usage.ru_stime)
        let figures: [(String, String, String, Double?)] = [
            ("cpu_seconds_total", "counter", "Processor time of the process, in seconds.", time),
            ("resident_memory_bytes", "gauge", "Resident memory of the process.", residentBytes.map { Double($0) }),
            ("open_fds", "gauge", "Open file descriptors.", openFiles()),
            ("max_fds", "gauge", "How many file descriptors may be open.", Double(limit.rlim_cur)),
            ("start_time_seconds", "gauge", "When the process was started, in seconds since 1970.", startTime),
        ]
        var text = ""
        for case (let name, let kind, let help, let value?) in figures {
            text += "# HELP process_\(name) \(help)\n# TYPE process_\(name) \(kind)\nprocess_\(name) "
            text += "\(Int64(exactly: value).map(String.init) ?? "\(value)")\n"
        }
        return Array(text.utf8)
    }

    static var residentBytes: Int? {
        words("/proc/self/statm")?.dropFirst().first.flatMap { Int($0) }.map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static func openFiles() -> Double? {
        var status = stat()
        if stat("/proc/self/fd", &status) == 0, status.st_size > 0 { return Double(status.st_size) }
        // A figure that cannot be read is left out, as text() says. The list has the descriptor that reads it.
        return (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map { Double($0.count - 1) }
    }

    private static let startTime: Double? = {
        // The name of the program, in parentheses, may have spaces; what is behind it begins with the third figure.
        guard let status = words("/proc/self/stat"), let name = status.lastIndex(where: { $0.hasSuffix(")") }),
            status.indices.contains(name + 20), let ticks = Double(status[name + 20]),
            let machine = words("/proc/stat"), let key = machine.firstIndex(of: "btime"),
            let boot = Double(machine[key + 1])
        else { return nil }
        return boot + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static func words(_ path: String) -> [Substring]? {
        FileManager.default.contents(atPath: path).map {
            String(decoding: $0, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        }
    }
}
