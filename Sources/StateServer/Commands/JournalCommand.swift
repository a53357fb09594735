internal import ArgumentParser

/// `journal`: the commands that use a journal without serving it.
struct JournalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "journal", abstract: "Operate the journal in a data directory.",
        subcommands: [
            JournalInfo.self, JournalVerify.self, JournalBackup.self, JournalRestore.self, JournalCompact.self,
            JournalExport.self, JournalImport.self, JournalReplay.self, QuarantineCommand.self,
        ])
}

/// `journal export`: writes the history as JSON Lines to standard output.
struct JournalExport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a state and the commits after it as JSON Lines, also while a server is running.")

    @OptionGroup var options: SettingsOptions

    @Option(help: "The version of the state to begin with; by default the oldest with all commits after it.")
    var since: UInt64?

    func run() async throws {
        do {
            let settings = try await options.read().settings
            var output = StandardOutput()
            try JournalTool(settings: settings).export(since: since) { try output.write($0) }
            try output.flush()
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

/// `journal import`: makes a journal from a recording, with the commits as recorded.
struct JournalImport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a journal of what export wrote, from standard input: the commits as they were recorded.")

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        do {
            let settings = try await options.read().settings
            var input = StandardInput()
            let span = try JournalTool(settings: settings).load { try input.nextLine() }
            print("imported: \(span.sentence)")
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

/// `journal replay`: makes a journal from the actions of a recording, with today's reducers.
struct JournalReplay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Make a journal of what export wrote, from standard input: today's reducers run on its actions.")

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        do {
            let settings = try await options.read().settings
            var input = StandardInput()
            let span = try JournalTool(settings: settings).replay(Program.current.served(settings).domain) {
                try input.nextLine()
            }
            print("replayed: \(span.sentence)")
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

/// `journal verify`: checks whether today's reducers produce the recorded states from the recorded actions.
struct JournalVerify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Run today's reducers on the recorded actions and name the first difference; changes nothing.")

    @OptionGroup var options: SettingsOptions

    @Flag(help: "Verify each snapshot, the index of IDs and the table of idempotency keys, too.")
    var deep = false

    func run() async throws {
        do {
            let settings = try await options.read().settings
            let span = try JournalTool(settings: settings).verify(
                Program.current.served(settings).domain, deep ? .deep : .plain)
            print("verified: \(span.sentence)")
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

extension JournalTool.Span {
    /// A sentence such as `versions 0 to 300, 300 commits`.
    var sentence: String { "versions \(start) to \(end), \(commitsCount) commits" }
}
