package import ArgumentParser
public import StateStore

/// The command line of a server: `serve`, `check`, `health`, `journal`, `token`, `hook`, `--help` and `--version`.
///
/// ```swift
/// await ServerCommand.main(Inventory())
/// ```
///
/// `serve`, which also runs without a subcommand, serves until SIGTERM or SIGINT. It logs to standard error by ``StateLogHandler``,
/// which it installs in the logging system. A wrong setting ends the program with a sentence on standard error and the exit
/// code 78, a damaged journal with 65, any other failure with 1, and a misspelled command line with 64.
///
/// An adopter's program has every command that `storekeeper` has, because `storekeeper` calls the same function. The price is
/// that a program without a command line builds swift-argument-parser, too.
public enum ServerCommand {
    /// Runs the command that the command line names on a domain, and ends the program.
    ///
    /// - Parameters:
    ///   - domain: the state, actions and reducers to serve.
    ///   - middleware: runs after the server's own validation, in array order.
    ///   - name: the program's name in its help; by default that of its executable.
    ///   - version: the program's own version, for `--version` and `/metrics`; by default `--version` names Storekeeper's.
    public static func main<D: Domain>(
        _ domain: D, middleware: [Middleware<D.State>] = [], name: String? = nil, version: String? = nil
    ) async {
        await main(middleware: middleware, name: name, version: version) { _ in domain }
    }

    /// Runs the command that the command line names on a domain that depends on settings, and ends the program.
    ///
    /// ```swift
    /// extension SettingKeys {
    ///     var warehouse: Setting<String> { Setting("warehouse", default: "main", "the warehouse to serve") }
    /// }
    ///
    /// await ServerCommand.main(settings: [\.warehouse]) { settings in Inventory(of: settings.warehouse) }
    /// ```
    ///
    /// - Parameters:
    ///   - settings: the program's own settings, which the file, the environment and the command line have beside those of the
    ///     package.
    ///   - middleware: runs after the server's own validation, in array order.
    ///   - name: the program's name in its help; by default that of its executable.
    ///   - version: the program's own version, for `--version` and `/metrics`; by default `--version` names Storekeeper's.
    ///   - domain: makes the state, actions and reducers to serve; a ``SettingsFault`` that it throws is one of its settings.
    public static func main<D: Domain>(
        settings: [PartialKeyPath<SettingKeys>] = [], middleware: [Middleware<D.State>] = [], name: String? = nil,
        version: String? = nil, domain: @escaping @Sendable (Settings) throws -> D
    ) async {
        await run {
            Program(
                name: name ?? Program.executableName, version: version,
                settings: try DeclaredSetting.all(with: settings)
            ) { settings in
                (try domain(settings), middleware.map(\.step))
            }
        }
    }

    /// Runs the command that the command line names, on one of several domains or one of the program's own.
    package static func main(
        settings: [PartialKeyPath<SettingKeys>], name: String, commands: [any ParsableCommand.Type],
        domainName: @escaping @Sendable (Settings) -> String,
        adopt: @escaping @Sendable (_ recorded: String, _ reading: inout SettingsReading) throws -> Void,
        domainFile: @escaping @Sendable (Settings) -> (kind: String, path: String)?,
        anyDomain: @escaping @Sendable (Settings) throws -> any Domain
    ) async {
        await run {
            Program(
                name: name, version: StateServer.version, settings: try DeclaredSetting.all(with: settings),
                commands: commands, nameDomain: domainName, adopt: adopt, domainFile: domainFile
            ) { settings in
                (try anyDomain(settings), [])
            }
        }
    }

    private static func run(_ make: () throws -> Program) async {
        ProcessSignals.receive()
        do {
            let program = try make()
            try program.checkOptionNames()
            await Program.$current.withValue(program) {
                do {
                    let command = try RootCommand.parseAsRoot()
                    if command is Serve { try ProcessSignals.endStart() } else { ProcessSignals.restore() }
                    if var command = command as? any AsyncParsableCommand {
                        try await command.run()
                    } else {
                        var command = command
                        try command.run()
                    }
                } catch {
                    RootCommand.exit(withError: error)
                }
            }
        } catch {
            RootCommand.exit(withError: Failure.ending(with: error))
        }
    }
}

struct RootCommand: AsyncParsableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: Program.current.name, abstract: "One authoritative state for many processes, over plain HTTP.",
            version: Program.current.version ?? "Storekeeper \(StateServer.version)",
            subcommands: [
                Serve.self, Check.self, Health.self, JournalCommand.self, TokenCommand.self, HookCommand.self,
            ] + Program.current.commands,
            defaultSubcommand: Serve.self)
    }
}

/// The domain and the settings of a program, task-local because ArgumentParser makes its commands of types alone.
struct Program: Sendable {
    @TaskLocal static var current = Program(
        name: executableName, version: nil, settings: SettingKeys.all,
        served: { _ in throw SettingsFault("this program serves no domain") })

    let name: String
    let version: String?
    let settings: [DeclaredSetting]
    var commands: [any ParsableCommand.Type] = []
    var nameDomain: (@Sendable (Settings) -> String)?
    /// Makes the settings those of the domain that a journal names, where nothing else names one; nil for one domain.
    var adopt: (@Sendable (_ recorded: String, _ reading: inout SettingsReading) throws -> Void)?
    var domainFile: (@Sendable (Settings) -> (kind: String, path: String)?)?
    let served: @Sendable (Settings) throws -> (domain: any Domain, middleware: [MiddlewareStep])

    func domainName(_ settings: Settings) -> String { nameDomain?(settings) ?? name }

    func settings(of reading: SettingsReading, takesOthers: Bool = false) throws -> Settings {
        // Where there is no journal, or it cannot be read, whoever opens it says so.
        guard let place = try JournalPlace(reading.settings.data, reading.settings), let recorded = try? place.domain
        else { return reading.settings }
        var reading = reading
        try adopt?(recorded.name, &reading)
        let claim = DomainClaim(domainName(reading.settings), takesOthers: takesOthers)
        try ServerFault.translating { _ = try claim.record(of: recorded, endingAt: 0, in: "in \(place)") }
        return reading.settings
    }

    /// Nil where the domain cannot be made: the start of the server says why.
    func catalogue(of reading: SettingsReading) -> Catalogue? {
        try? CompiledDomain(served(settings(of: reading)).domain).catalogue
    }

    static var executableName: String {
        CommandLine.arguments.first.flatMap { $0.split(separator: "/").last }.map(String.init) ?? "server"
    }

    static let optionNames: Set<String> = [
        "accept-loss", "all", "at-least", "at-most", "chain", "change-domain", "config", "deep", "dispatch", "equals",
        "expires", "finish", "fork", "from", "header", "help", "help-hidden", "insecure", "json", "not", "open",
        "operate", "others", "path", "port-file", "read", "repeats", "same-epoch", "since", "subject", "to", "types",
        "url", "version", "watch",
    ]

    func checkOptionNames() throws(SettingsFault) {
        for setting in settings where Self.optionNames.contains(setting.optionName) {
            throw SettingsFault("the setting \(setting.key) has the name of the option --\(setting.optionName)")
        }
    }
}
