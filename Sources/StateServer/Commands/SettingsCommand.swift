internal import ArgumentParser

/// A command that needs the settings; what it throws ends the program with a sentence and an exit code.
protocol SettingsCommand: AsyncParsableCommand {
    var options: SettingsOptions { get }

    func run(_ reading: SettingsReading) async throws
}

extension SettingsCommand {
    func run() async throws {
        do {
            try await run(options.read())
        } catch {
            StateLogHandler.flush()
            throw Failure.ending(with: error)
        }
    }
}
