internal import Benchmarking
internal import Foundation

extension ServerKind {
    /// webdis, an HTTP server for Redis; on disk, Redis appends and syncs before each answer.
    static let webdis = ServerKind(who: "webdis + Redis") { workplace, storage in
        guard let webdis = workplace.installed("webdis"), let redis = workplace.installed("redis-server") else {
            return nil
        }
        let directory = workplace.path("redis")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let redisPort = try FreePort.find()
        let persistence =
            storage == .disk ? ["--appendonly", "yes", "--appendfsync", "always"] : ["--appendonly", "no"]
        let store = try ChildProcess(
            redis,
            ["--port", "\(redisPort)", "--bind", "127.0.0.1", "--dir", directory.path, "--save", ""] + persistence,
            in: workplace, ending: .anyhow)
        try store.awaiting("an open port") { Connection.isOpen(redisPort) ? () : nil }
        let port = try FreePort.find()
        let configuration = try workplace.file(
            "webdis.json",
            """
            {
                "redis_host": "127.0.0.1", "redis_port": \(redisPort), "http_host": "127.0.0.1", "http_port": \(port),
                "threads": 2, "pool_size": 20, "daemonize": false, "verbosity": 0,
                "logfile": "\(workplace.path("webdis.log").path)"
            }

            """)
        let door = try ChildProcess(webdis, [configuration.path], in: workplace, ending: .anyhow)
        try door.awaiting("an open port") { Connection.isOpen(port) ? () : nil }
        let conversation = Conversation(
            get: .get("/GET/counter"), post: LoadRequest("POST", "/", body: "INCRBY/counter/1"))
        return Server(who: "webdis + Redis", processes: [door, store], port: port, conversation: conversation)
    }
}
