internal import ArgumentParser

/// The command line.
@main
struct Storekeeper: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storekeeper",
        abstract: "One authoritative state for many processes, over plain HTTP.", version: "0.1.0",
        subcommands: [Serve.self, Check.self, Health.self, JournalCommand.self, TokenCommand.self],
        defaultSubcommand: Serve.self)
}
