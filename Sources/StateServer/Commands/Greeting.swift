internal import Glibc
internal import StateStore

enum Greeting {
    static func show(
        _ domain: String, data: String, socket: String?, listening: StateServer.Address, isProtected: Bool
    ) {
        let served = domain == "document" ? "one JSON document" : domain
        let kept = data == "none" ? "in memory only" : "with its journal in \(data)"
        let token = isProtected ? "-H \"Authorization: Bearer $TOKEN\" " : ""
        let isLocal = ["", "0.0.0.0", "::", "127.0.0.1", "::1"].contains(listening.host)
        let host = isLocal ? "localhost" : listening.host.contains(":") ? "[\(listening.host)]" : listening.host
        let address = socket.map { "--unix-socket \($0) localhost" } ?? "\(host):\(listening.port)"
        let write =
            domain == "document"
            ? #"--json '{"type":"document/set","payload":{"path":"/hello","value":"world"}}' \#(address)/v1/actions"#
            : "\(address)/v1/actions    # the actions that it takes, by POST"
        let lines = [
            "Serves  \(served), \(kept)",
            "Page    \(socket == nil ? "http://\(address)/" : "none: a browser cannot open a Unix socket")",
            "Read    curl \(token)\(address)/v1/state",
            "Write   curl \(token)\(write)",
            "Access  "
                + (isProtected
                    ? "whoever has a token; \(Program.current.name) token create makes one"
                    : "everybody who reaches it may do everything, until there is a token"),
        ]
        show(lines.map { "  \($0)" }.joined(separator: "\n"))
    }

    static func show(_ text: String) {
        guard isatty(STDERR_FILENO) == 1, text.contains("\n") else { return }
        LogWriter.standardError.write(Array("\(text)\n".utf8))
    }
}
