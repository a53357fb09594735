internal import ArgumentParser
internal import StateCluster

struct Check: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the effective settings, where each came from, and what is at the place of the journal.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        _ = try Program.current.served(Program.current.settings(of: reading))
        let settings = reading.settings
        if settings.access != .open {
            // The tokens beside a journal in etcd are not read, because etcd may not answer.
            if settings.tokens != "data" || !ClusterAddress.isMeant(by: settings.data) {
                _ = try settings.tokenFile()?.read()
            }
            let faults = try settings.keyFile?.readAtStart()?.faults ?? []
            Failure.warn(faults.map { "key left out: \($0)" })
        }
        print("# journal: \(try JournalPlace(settings.data, settings)?.finding ?? "none")")
        for setting in reading.declared {
            let value = "\(setting.key) = \(setting.json(settings[setting]))"
            let padding = String(repeating: " ", count: max(1, 44 - value.count))
            print("\(value)\(padding)# \(reading.origins[setting.key] ?? "default")")
        }
    }
}
