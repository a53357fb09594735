internal import Benchmarking
internal import Foundation

extension ServerKind {
    /// The baseline: the minimal C program on libmicrohttpd.
    static let limit = ServerKind(who: "C") { workplace, storage in
        let arguments = storage == .disk ? ["--durable", workplace.path("limit.db").path] : []
        let process = try ChildProcess(workplace.binary("microhttpd-limit"), arguments, in: workplace)
        let port = try process.awaiting("a port") {
            process.text.hasSuffix("\n") ? UInt16(process.text.dropLast()) : nil
        }
        var conversation = Conversation.ofStates
        conversation.stream = .get("/v1/state/counter", fields: [("Accept", "text/event-stream")])
        return Server(who: "C", processes: [process], port: port, conversation: conversation)
    }

    /// The server under measurement.
    static let storekeeper = ServerKind(who: "storekeeper") { workplace, storage in
        try startStorekeeper(workplace, data: storage == .disk ? workplace.path("data").path : "none")
    }

    /// Starts storekeeper on a data directory, or on `none`.
    static func startStorekeeper(
        _ workplace: Workplace, data: String, settings: [String: String] = [:]
    ) throws -> Server {
        let portFile = workplace.path("port")
        let process = try ChildProcess(
            workplace.binary("storekeeper"),
            [
                "serve", "--domain", "showcase", "--listen", "127.0.0.1:0", "--data", data, "--port-file",
                portFile.path, "--log-level", "warning",
            ],
            in: workplace, environment: settings)
        let port = try process.awaiting("a port") {
            // The file does not exist before the server is ready.
            (try? String(contentsOf: portFile, encoding: .utf8)).flatMap { UInt16($0.dropLast()) }
        }
        var conversation = Conversation.ofStates
        conversation.stream = .get("/v1/changes?since=now", fields: [("Accept", "text/event-stream")])
        conversation.waitersMetric = "storekeeper_waiters"
        return Server(who: "storekeeper", processes: [process], port: port, conversation: conversation)
    }
}

extension Conversation {
    /// The requests that storekeeper and the baseline have in common.
    fileprivate static let ofStates = Conversation(
        get: .get("/v1/state/counter"), post: .post("/v1/actions", json: action),
        wait: { .get("/v1/state/counter?wait=50", fields: [("If-None-Match", $0)]) })
}
