internal import ArgumentParser

/// `check`: prints the effective settings and where each came from.
struct Check: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the effective settings and where each came from.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        _ = try Program.current.served(reading.settings)
        print("# traits: \(StateServer.traits.isEmpty ? "none" : StateServer.traits.joined(separator: ", "))")
        for setting in reading.declared {
            let value = "\(setting.key) = \(reading.settings[setting])"
            let padding = String(repeating: " ", count: max(1, 44 - value.count))
            print("\(value)\(padding)# \(reading.origins[setting.key] ?? "default")")
        }
    }
}
