internal import Benchmarking
internal import Foundation

extension ServerKind {
    /// nginx: a constant answer, and nchan's long-polls and event streams where that module is installed.
    static let nginx = ServerKind(who: "nginx") { workplace, storage in
        guard storage == .memory, let binary = workplace.installed("nginx") else { return nil }
        let module = "/usr/lib/nginx/modules/ngx_nchan_module.so"
        let hasNchan = FileManager.default.fileExists(atPath: module)
        let directory = workplace.path("nginx")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let port = try FreePort.find()
        let configuration = try workplace.file(
            "nginx.conf", text(port: port, directory: directory.path, nchan: hasNchan ? module : nil))
        let process = try ChildProcess(
            binary, ["-c", configuration.path, "-p", directory.path, "-e", "stderr"], in: workplace, ending: .anyhow)
        try process.awaiting("an open port") { Connection.isOpen(port) ? () : nil }
        var conversation = Conversation(get: .get("/state"))
        if hasNchan {
            conversation.post = .post("/publish", json: Conversation.action)
            conversation.wait = { _ in .get("/subscribe") }
            conversation.stream = .get("/subscribe", fields: [("Accept", "text/event-stream")])
        }
        return Server(
            who: hasNchan ? "nginx + nchan" : "nginx", processes: [process], port: port, conversation: conversation)
    }

    /// The configuration: one process in the foreground that writes only into its directory.
    private static func text(port: UInt16, directory: String, nchan: String?) -> String {
        let fields = ["State-Cursor a.1", "Cache-Control 'private, no-cache'", "X-Content-Type-Options nosniff"]
            .map { "add_header \($0);" }.joined(separator: " ")
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(directory);" }
            .joined(separator: " ")
        let channels = """
                    location = /publish { nchan_publisher; nchan_channel_id c; nchan_message_buffer_length 1; }
                    location = /subscribe {
                        nchan_subscriber longpoll eventsource; nchan_channel_id c;
                        nchan_subscriber_first_message newest; nchan_subscriber_timeout 60s;
                    }
            """
        return """
            \(nchan.map { "load_module \($0);" } ?? "")
            daemon off; master_process off; pid \(directory)/pid;
            worker_rlimit_nofile 20000;
            events { worker_connections 19900; use epoll; }
            http {
                access_log off; keepalive_requests 1000000000; keepalive_timeout 75s; \(temporary)
                server {
                    listen 127.0.0.1:\(port) backlog=4096;
                    location = /state {
                        default_type application/json; etag on; \(fields)
                        return 200 '{"value":12345678,"note":"as long as a small state is"}';
                    }
            \(nchan == nil ? "" : channels)
                }
            }

            """
    }
}
