internal import ArgumentParser

struct Check: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the effective settings, where each came from, and what is at the place of the journal.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        _ = try Program.current.served(Program.current.settings(of: reading))
        Failure.warn(try Authenticator.check(reading.settings).map { "key left out: \($0)" })
        print("# journal: \(try JournalPlace(reading.settings.data, reading.settings)?.finding ?? "none")")
        for setting in reading.declared {
            let value = "\(setting.key) = \(setting.json(reading.settings[setting]))"
            let padding = String(repeating: " ", count: max(1, 44 - value.count))
            print("\(value)\(padding)# \(reading.origins[setting.key] ?? "default")")
        }
    }
}
