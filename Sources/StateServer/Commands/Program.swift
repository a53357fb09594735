internal import ArgumentParser
internal import StateStore

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
