internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import StateStore

struct Serve: SettingsCommand {
    static let configuration = CommandConfiguration(abstract: "Serve a state (the default).")

    @OptionGroup var options: SettingsOptions

    @Option(help: "Write the bound port to this file when ready; 0 where the server listens on Unix sockets only.")
    var portFile: String?

    @Flag(
        help: ArgumentHelp(
            "Where the journal is damaged or shorter than it was, go on from its last good version.",
            discussion: "The history gets a new epoch. The damaged files stay in the data directory, under other names."
        ))
    var acceptLoss = false

    @Flag(
        help: ArgumentHelp(
            "Record the served domain as the domain of the journal.",
            discussion: "Without it, a journal of another domain is refused. The state must fit the served domain."))
    var changeDomain = false

    @Flag(help: "Load the functions of the model again whenever its file is saved; SIGHUP does it once.")
    var watch = false

    func run(_ reading: SettingsReading) async throws {
        // A process that ends runs the destructors of C++ while other threads still use its objects, and may abort there.
        on_exit(
            { status, _ in
                fflush(nil)
                _exit(status)
            }, nil)
        if let portFile { try Self.checkPlace(of: portFile) }
        let settings = try Program.current.settings(of: reading, takesOthers: changeDomain)
        try StateServer.checkAddress(in: settings)
        LoggingSystem.bootstrap(StateLogHandler.init)
        var logger = Logger(label: Program.current.name)
        logger.logLevel = settings.logLevel
        if !reading.ignoredVariables.isEmpty {
            logger.log(
                .notice, "variables of Kubernetes ignored", ["names": reading.ignoredVariables.joined(separator: " ")])
        }
        let file = Program.current.domainFile?(settings)
        guard !watch || file != nil else {
            throw Failure("--watch needs a model or a schema, and this server serves neither")
        }
        let served = try Program.current.served(settings)
        let claim = DomainClaim(
            Program.current.domainName(settings), takesOthers: changeDomain, hasSchema: file?.kind == "schema")
        let server = try StateServer(
            served.domain, of: claim, settings: settings, logger: logger, middleware: served.middleware,
            version: Program.current.version, onDamage: acceptLoss ? .acceptLoss : .refuse
        ) { address, socket, isProtected in
            if let portFile {
                // The write is atomic, because a process that waits for the file may read it at any time.
                try Data("\(address.port)\n".utf8).write(to: URL(fileURLWithPath: portFile), options: .atomic)
            }
            Greeting.show(
                Program.current.domainName(settings), data: settings.data, socket: address.port == 0 ? socket : nil,
                listening: address, isProtected: isProtected)
        }
        try await server.runUntilSignal(reloading: file?.kind ?? "model", watching: watch ? file?.path : nil)
        StateLogHandler.flush()
        // The process exits without freeing its objects: freeing a million of them takes seconds.
        withExtendedLifetime((server, served)) { Self.exit() }
    }

    private static func checkPlace(of portFile: String) throws {
        // Only a directory has contents.
        if (try? FileManager.default.contentsOfDirectory(atPath: portFile)) != nil {
            throw Failure("the port file \(portFile) is a directory; name a file")
        }
        let trial = URL(fileURLWithPath: portFile + ".trial")
        do {
            try Data().write(to: trial)
            try FileManager.default.removeItem(at: trial)
        } catch {
            throw Failure(
                "the port file \(portFile) cannot be written: does its directory exist, and may this user write there?")
        }
    }
}

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
