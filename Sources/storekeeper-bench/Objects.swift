internal import Benchmarking
internal import Glibc

/// A canvas with many objects, as the showcase has it.
enum Objects {
    static let frame = #"{"x":0,"y":0,"width":1,"height":1}"#

    /// Puts objects 0 to `count - 1` on one block: without a label they all look alike, and share one entity tag.
    static func fill(_ server: Server, _ count: Int) throws {
        let connection = try Connection(server.port)
        try connection.ask(
            .post("/v1/actions", json: #"{"type":"canvas/addBlock","payload":{"id":0,"frame":\#(frame)}}"#))
        // In batches, one commit each: a patch of many objects costs less than as many patches.
        for start in stride(from: 0, to: count, by: 5000) {
            let actions = (start..<min(count, start + 5000)).map {
                #"{"type":"canvas/addObject","payload":{"id":\#($0),"block":0,"frame":\#(frame)}}"#
            }
            try connection.ask(.post("/v1/actions", json: "[\(actions.joined(separator: ","))]"))
        }
    }

    /// A thousand moves, each to another place than the object's last.
    static func moves(among ids: Range<Int>) -> [LoadRequest] {
        (0..<1000).map { turn in
            // Spread over all, by a step that shares no divisor with the usual counts.
            let id = ids.lowerBound + turn * 7919 % ids.count
            return .post(
                "/v1/actions",
                json: #"{"type":"canvas/moveObject","payload":{"id":\#(id),"x":\#(turn),"y":\#(turn % 7)}}"#)
        }
    }

    /// A thousand GETs of one object each.
    static func gets(among ids: Range<Int>) -> [LoadRequest] {
        (0..<1000).map { .get("/v1/state/canvas/objects/\(ids.lowerBound + $0 * 7919 % ids.count)") }
    }
}

extension Connection {
    /// Dispatches these actions, each as a commit of its own.
    func load(_ lines: [String]) throws {
        let answer = try ask(
            LoadRequest(
                "POST", "/v1/actions", fields: [("Content-Type", "application/x-ndjson")],
                body: lines.joined(separator: "\n")))
        let count = answer.body.split(separator: "\n").count { $0.hasPrefix("{\"cursor\"") }
        guard count == lines.count else { throw Failure("\(count) of \(lines.count) actions were taken") }
    }
}
