internal import ArgumentParser
internal import StateHTTP

/// `token`: the tokens that a server asks its clients for.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Make, list or revoke the tokens of a server, also while it is running.",
        subcommands: [TokenCreate.self, TokenList.self, TokenRevoke.self])
}

/// `token create`: adds a token to the file and prints it, once.
struct TokenCreate: SettingsCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "create", abstract: "Make a token and print it; only its hash is kept.",
            discussion:
                "For example: \(Program.current.name) token create --subject ci --read /tasks --dispatch 'tasks/*'")
    }

    @OptionGroup var options: SettingsOptions

    @Option(help: "Who will hold the token; commits name it.")
    var subject: String

    @Option(
        help:
            "What it may read, once for each: a JSON Pointer into the state, view:NAME, store:NAME, actions:TYPE, or * for everything."
    )
    var read: [String] = []

    @Option(help: "An action type that it may dispatch, once for each; a * at the end stands for any ending.")
    var dispatch: [String] = []

    @Flag(help: "It may see the actions of other subjects.")
    var others = false

    @Flag(help: "It may see metrics and operate the journal.")
    var operate = false

    @Flag(help: "It may do everything.")
    var all = false

    func run(_ reading: SettingsReading) async throws {
        let grant = all ? Grant.everything : Grant(read: read, dispatch: dispatch, others: others, operate: operate)
        // Where the domain cannot be made, the token is none the worse, and the start of the server says why.
        let catalogue = try? Program.current.served(reading.settings).catalogue()
        let made = try TokenTool(settings: reading.settings).create(subject: subject, grant, in: catalogue)
        print(made.token)
        Failure.warn(made.warnings)
    }
}

/// `token list`: prints a line for each token.
struct TokenList: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each token: name, subject, time, and what it allows.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        for token in try TokenTool(settings: reading.settings).list() {
            let grant = token.grant
            let words =
                grant.read.map { "read=\($0)" } + grant.dispatch.map { "dispatch=\($0)" }
                + (grant.others ? ["others"] : []) + (grant.operate ? ["operate"] : [])
            print(token.id, token.subject, token.created, words.joined(separator: " "), separator: "  ")
        }
    }
}

/// `token revoke`: removes a token from the file.
struct TokenRevoke: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Remove a token; its streams and waits end within a second.")

    @OptionGroup var options: SettingsOptions

    @Argument(help: "The name of the token, as token list prints it.")
    var id: String

    func run(_ reading: SettingsReading) async throws {
        let warnings = try TokenTool(settings: reading.settings).revoke(id)
        print("revoked: \(id)")
        Failure.warn(warnings)
    }
}
