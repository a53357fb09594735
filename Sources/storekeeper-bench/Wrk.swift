internal import Benchmarking
internal import Foundation

/// Loads a server with wrk and reads the server's CPU time.
enum Wrk {
    /// Runs one load: each connection sends its next request as soon as it has an answer.
    ///
    /// - Throws: `Failure` when wrk is not installed, or when an answer was an error.
    static func load(
        _ server: Server, _ requests: [LoadRequest], connections: Int, seconds: Int, in workplace: Workplace
    ) throws -> Reading {
        guard let wrk = workplace.installed("wrk") else { throw Failure("wrk is not installed: apt-get install wrk") }
        // By default wrk counts an answer after two seconds as an error.
        var arguments = ["-t1", "-c\(connections)", "-d\(seconds)s", "--latency", "--timeout", "20s"]
        if requests.count == 1, requests[0].method == "GET", requests[0].fields.isEmpty {
            arguments.append("http://127.0.0.1:\(server.port)\(requests[0].path)")
        } else {
            let script = try workplace.file("requests.lua", LoadRequest.wrkScript(requests))
            arguments += ["-s", script.path, "http://127.0.0.1:\(server.port)/"]
        }
        let before = server.cpuMicroseconds
        let text = try ChildProcess(wrk, arguments, in: workplace).finish()
        let spent = server.cpuMicroseconds - before
        guard let report = WrkReport(text) else { throw Failure("wrk has said: \(text.suffix(500))") }
        guard report.complaints.isEmpty else {
            throw Failure("\(server.who): \(report.complaints.joined(separator: "; "))")
        }
        var reading = Reading()
        reading.cpuMicroseconds = spent / Double(max(1, report.requestsCount))
        reading.perSecond = report.perSecond
        reading.p50Milliseconds = report.p50Milliseconds
        reading.p99Milliseconds = report.p99Milliseconds
        reading.residentKiB = server.residentKiB
        return reading
    }
}
