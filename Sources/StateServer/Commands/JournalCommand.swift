internal import ArgumentParser
internal import StateStore

/// `journal`: the commands that use a journal without serving it.
struct JournalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "journal", abstract: "Operate a journal, in a directory or in etcd.",
        subcommands: [
            JournalInfo.self, JournalVerify.self, JournalBackup.self, JournalRestore.self, JournalCopy.self,
            JournalCompact.self, JournalExport.self, JournalImport.self, JournalReplay.self, QuarantineCommand.self,
        ])
}

/// `journal export`: writes the history as JSON Lines to standard output.
struct JournalExport: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a state and the commits after it as JSON Lines, also while a server is running.")

    @OptionGroup var options: SettingsOptions

    @Option(help: "The version of the state to begin with; by default the oldest with all commits after it.")
    var since: UInt64?

    func run(_ reading: SettingsReading) async throws {
        let output = StandardOutput()
        try JournalTool(settings: reading.settings).export(since: since) { try output.write($0) }
        try output.flush()
    }
}

/// `journal import`: makes a journal from a recording, with the commits as recorded.
struct JournalImport: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a journal of what export wrote, from standard input: the commits as they were recorded.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let input = StandardInput()
        let span = try JournalTool(settings: reading.settings).load { try input.nextLine() }
        print("imported: \(span.sentence)")
    }
}

/// `journal replay`: makes a journal from the actions of a recording, with today's reducers.
struct JournalReplay: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Make a journal of what export wrote, from standard input: today's reducers run on its actions.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let input = StandardInput()
        let span = try JournalTool(settings: reading.settings).replay(Program.current.served(reading.settings).domain) {
            try input.nextLine()
        }
        print("replayed: \(span.sentence)")
    }
}

/// `journal verify`: checks whether today's reducers produce the recorded states from the recorded actions.
struct JournalVerify: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Run today's reducers on the recorded actions and name the first difference; changes nothing.")

    @OptionGroup var options: SettingsOptions

    @Flag(help: "Verify each snapshot, the index of IDs and the table of idempotency keys, too.")
    var deep = false

    func run(_ reading: SettingsReading) async throws {
        let span = try JournalTool(settings: reading.settings).verify(
            Program.current.served(reading.settings).domain, deep ? .deep : .plain)
        print("verified: \(span.sentence)")
    }
}

extension JournalSpan {
    /// A sentence such as `versions 0 to 300, 300 commits`.
    var sentence: String { "versions \(start) to \(end), \(commitsCount) commits" }
}
