internal import ArgumentParser
internal import StateServer

/// The command line.
@main
struct Storekeeper: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storekeeper",
        abstract: "One authoritative state for many processes, over plain HTTP.", version: StateServer.version,
        subcommands: [Serve.self, Check.self, Health.self, JournalCommand.self, TokenCommand.self],
        defaultSubcommand: Serve.self)
}
