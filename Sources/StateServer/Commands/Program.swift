internal import ArgumentParser
internal import Logging
internal import StateStore

/// What a program serves, and the settings that it takes.
///
/// ArgumentParser makes its commands of types alone, so the program is a value of the task that parses and runs them.
struct Program: Sendable {
    @TaskLocal static var current = Program(
        name: executableName, version: nil, settings: SettingKeys.all,
        served: { _ in throw SettingsFault(description: "this program serves no domain") })

    let name: String
    /// The version that the program gives itself; nil for none.
    let version: String?
    /// Every setting, those of the package first.
    let settings: [DeclaredSetting]
    /// The program's own commands.
    var commands: [any ParsableCommand.Type] = []
    /// Makes the domain by the settings.
    let served: @Sendable (Settings) throws -> Served

    /// A domain with its middleware.
    struct Served: Sendable {
        let domain: any Domain
        /// The names of the domain.
        let catalogue: @Sendable () throws -> Catalogue
        /// Makes the server of the domain.
        let server:
            @Sendable (
                Settings, Logger, StateServer.DamagePolicy, @escaping @Sendable (StateServer.Address) throws -> Void
            )
                throws -> StateServer

        init<D: Domain>(_ domain: D, middleware: [Middleware<D.State>]) {
            self.domain = domain
            catalogue = { try CompiledDomain(domain).catalogue }
            server = { settings, logger, policy, onReady in
                try StateServer(
                    domain, settings: settings, logger: logger, middleware: middleware,
                    version: Program.current.version,
                    onDamage: policy, onReady: onReady)
            }
        }
    }

    /// The name of the executable, without its directory.
    static var executableName: String {
        CommandLine.arguments.first.flatMap { $0.split(separator: "/").last }.map(String.init) ?? "server"
    }

    /// The names of the options that are no settings, in any command.
    static let optionNames: Set<String> = [
        "accept-loss", "all", "at-least", "at-most", "config", "deep", "dispatch", "equals", "fork", "from", "help",
        "help-hidden", "json", "not", "open", "operate", "others", "path", "port-file", "read", "repeats", "same-epoch",
        "since", "subject", "to", "version",
    ]

    /// Throws where an option of the program's own would have the name of another one.
    func checkOptionNames() throws(SettingsFault) {
        for setting in settings where Self.optionNames.contains(setting.optionName) {
            throw SettingsFault(
                description: "the setting \(setting.key) has the name of the option --\(setting.optionName)")
        }
    }
}
