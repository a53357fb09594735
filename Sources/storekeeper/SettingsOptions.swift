internal import ArgumentParser
internal import FoundationEssentials
internal import StateServer

/// The flags of every subcommand, which select and override settings.
struct SettingsOptions: ParsableArguments {
    @Option(help: "A JSON file of settings; config/storekeeper.json lists them all.")
    var config: String?

    @Option(help: "Address and port, such as 127.0.0.1:8080, or unix:/path/of/a.sock; port 0 picks a free one.")
    var listen: String?

    @Option(help: "Directory of the journal; none keeps the state in memory.")
    var data: String?

    @Option(help: "Which domain to serve: \(Domains.names.joined(separator: ", ")).")
    var domain: String?

    @Option(help: "trace, debug, info, notice, warning, error or critical.")
    var logLevel: String?

    @Flag(help: "Let every client do everything, on any address, without a token.")
    var open = false

    /// Reads the settings from the file, the environment and these flags; a later source overrides an earlier one.
    func read() async throws -> SettingsReading {
        let flags: [String: String?] = [
            "listen": listen, "data": data, "domain": domain, "log_level": logLevel,
            "access": open ? "open" : nil,
        ]
        return try await SettingsReading(
            file: config, environment: ProcessInfo.processInfo.environment, flags: flags.compactMapValues(\.self))
    }
}
