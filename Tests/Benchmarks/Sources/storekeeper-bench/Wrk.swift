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
        if requests.count == 1, requests[0].method == "GET", requests[0].fields.isEmpty {
            return try load(server, [], requests[0].path, connections, seconds, workplace)
        }
        let script = try workplace.file("requests.lua", LoadRequest.wrkScript(requests))
        return try load(server, ["-s", script.path], "/", connections, seconds, workplace)
    }

    /// Runs one load in which each request has another number in the place of `%d`, from a number on.
    ///
    /// - Throws: `Failure` when wrk is not installed, or when an answer was an error.
    static func load(
        _ server: Server, numbered request: LoadRequest, from first: Int, connections: Int, seconds: Int,
        in workplace: Workplace
    ) throws -> Reading {
        let text = LoadRequest.wrkScript(numbered: request, from: first, count: 100_000 * seconds)
        let script = try workplace.file("numbered.lua", text)
        return try load(server, ["-s", script.path], "/", connections, seconds, workplace)
    }

    /// Runs one load of GETs, each with another number below `count` in the place of `%d`.
    ///
    /// - Throws: `Failure` when wrk is not installed, or when an answer was an error.
    static func load(
        _ server: Server, spreading path: String, over count: Int, connections: Int, seconds: Int,
        in workplace: Workplace
    ) throws -> Reading {
        let script = try workplace.file("spread.lua", LoadRequest.wrkScript(spreading: path, over: count))
        return try load(server, ["-s", script.path], "/", connections, seconds, workplace)
    }

    private static func load(
        _ server: Server, _ script: [String], _ path: String, _ connections: Int, _ seconds: Int,
        _ workplace: Workplace
    ) throws -> Reading {
        guard let wrk = workplace.installed("wrk") else { throw Failure("wrk is not installed: apt-get install wrk") }
        // By default wrk counts an answer after two seconds as an error.
        let options = ["-t1", "-c\(connections)", "-d\(seconds)s", "--latency", "--timeout", "20s"]
        let arguments = options + script + ["http://127.0.0.1:\(server.port)\(path)"]
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
