internal import ArgumentParser
internal import FoundationEssentials
internal import Logging
internal import StateServer
internal import StateStore

/// `storekeeper serve`: runs until SIGTERM or SIGINT.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Serve a state (the default).")

    @OptionGroup var options: SettingsOptions

    @Option(help: "Write the bound port to this file when ready.")
    var portFile: String?

    @Flag(
        help: ArgumentHelp(
            "Where the journal is damaged or shorter than it was, go on from its last good version.",
            discussion: "The history gets a new epoch. The damaged files stay in the data directory, under other names."
        ))
    var acceptLoss = false

    func run() async throws {
        do {
            let settings = try await options.read().settings
            let logger = try Self.logger(settings)
            let server = try Self.server(
                Domains.domain(settings), settings, logger, onDamage: acceptLoss ? .acceptLoss : .refuse,
                portFile: portFile)
            try await server.runUntilSignal()
            // The process exits without freeing its objects: freeing a million of them takes seconds.
            Self.exit()
        } catch {
            throw Failure("\(error)")
        }
    }

    private static func server(
        _ domain: some Domain, _ settings: Settings, _ logger: Logger, onDamage policy: StateServer.DamagePolicy,
        portFile: String?
    ) throws -> StateServer {
        try StateServer(domain, settings: settings, logger: logger, onDamage: policy) { address in
            guard let portFile else { return }
            // The write is atomic, because a process that waits for the file may read it at any time.
            try Data("\(address.port)\n".utf8).write(to: URL(fileURLWithPath: portFile), options: .atomic)
        }
    }

    private static func logger(_ settings: Settings) throws -> Logger {
        guard let level = Logger.Level(rawValue: settings.text("log_level")) else {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw SettingsFault(description: "log_level must be one of \(levels)")
        }
        LoggingSystem.bootstrap(JSONLogHandler.init)
        var logger = Logger(label: "storekeeper")
        logger.logLevel = level
        return logger
    }
}

/// Ends the program with a sentence on standard error and exit code 1.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
