internal import Benchmarking
internal import Glibc

/// Requests for a canvas with many objects, of the domain `showcase`.
enum Objects {
    static let frame = #"{"x":0,"y":0,"width":1,"height":1}"#

    /// Creates the objects 0 to `count - 1` in one place: without labels they have equal JSON, and one entity tag.
    static func fill(_ server: Server, _ count: Int) throws {
        let connection = try Connection(server.port)
        try connection.ask(
            .post("/v1/actions", json: #"{"type":"canvas/addBlock","payload":{"id":0,"frame":\#(frame)}}"#))
        // Each batch is one commit: one patch of many objects costs less than many patches.
        for start in stride(from: 0, to: count, by: 5000) {
            let actions = (start..<min(count, start + 5000)).map {
                #"{"type":"canvas/addObject","payload":{"id":\#($0),"block":0,"frame":\#(frame)}}"#
            }
            try connection.ask(.post("/v1/actions", json: "[\(actions.joined(separator: ","))]"))
        }
    }

    /// A thousand moves, each to another place than the last move of the object.
    static func moves(among ids: Range<Int>) -> [LoadRequest] {
        (0..<1000).map { turn in
            // The step shares no divisor with the usual counts, so the moves spread over all objects.
            let id = ids.lowerBound + turn * 7919 % ids.count
            return .post(
                "/v1/actions",
                json: #"{"type":"canvas/moveObject","payload":{"id":\#(id),"x":\#(turn),"y":\#(turn % 7)}}"#)
        }
    }

    /// Runs a load of GETs of one object each, spread over so many objects.
    static func read(
        _ server: Server, _ count: Int, connections: Int, seconds: Int, in workplace: Workplace
    ) throws -> Reading {
        try Wrk.load(
            server, spreading: "/v1/state/canvas/objects/%d", over: count, connections: connections, seconds: seconds,
            in: workplace)
    }
}

extension Connection {
    /// Dispatches actions, each as a commit of its own.
    func load(_ lines: [String]) throws {
        let answer = try ask(
            LoadRequest(
                "POST", "/v1/actions", fields: [("Content-Type", "application/x-ndjson")],
                body: lines.joined(separator: "\n")))
        let count = answer.body.split(separator: "\n").count { $0.hasPrefix("{\"cursor\"") }
        guard count == lines.count else { throw Failure("\(count) of \(lines.count) actions were taken") }
    }
}
