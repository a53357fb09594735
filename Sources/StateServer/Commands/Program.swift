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
    /// Names the domain of some settings; nil where each has the name of the program.
    var nameDomain: (@Sendable (Settings) -> String)?
    /// Makes the settings those of the domain that a journal names, where nothing else names one; nil for one domain.
    var adopt: (@Sendable (_ recorded: String, _ reading: inout SettingsReading) throws -> Void)?
    /// Makes the domain by the settings.
    let served: @Sendable (Settings) throws -> Served

    /// The name by which a journal knows the domain of some settings.
    func domainName(_ settings: Settings) -> String { nameDomain?(settings) ?? name }

    /// The settings with the domain that the journal in `data` names, where nothing else names one.
    ///
    /// - Parameter takesOthers: whether a journal of another domain becomes one of this domain.
    /// - Throws: ``SettingsFault`` for a journal of another domain.
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

    /// A domain with its middleware.
    struct Served: Sendable {
        let domain: any Domain
        /// The names of the domain.
        let catalogue: @Sendable () throws -> Catalogue
        /// Makes the server of the domain.
        let server:
            @Sendable (
                Settings, DomainClaim, Logger, StateServer.DamagePolicy,
                @escaping @Sendable (StateServer.Address) throws -> Void
            )
                throws -> StateServer

        init<D: Domain>(_ domain: D, middleware: [Middleware<D.State>]) {
            self.domain = domain
            catalogue = { try CompiledDomain(domain).catalogue }
            server = { settings, claim, logger, policy, onReady in
                try StateServer(
                    domain, of: claim, settings: settings, logger: logger, middleware: middleware,
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
        "accept-loss", "all", "at-least", "at-most", "chain", "change-domain", "config", "deep", "dispatch", "equals",
        "fork", "from", "help",
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
