internal import ArgumentParser
internal import StateJournal

/// `journal quarantine`: the actions that a server has set aside because they end it.
struct QuarantineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine", abstract: "List the actions that a server has set aside, or let them pass.",
        subcommands: [QuarantineList.self, QuarantineDrop.self, QuarantineRetry.self])
}

/// `journal quarantine list`: a line for each action.
struct QuarantineList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the actions, oldest first.")

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        do {
            for action in try await QuarantineTool(options).list() {
                let state = action.isRefused ? "refused" : "may pass"
                print(
                    "\(action.id)\t\(state)\t\(action.crashes) crashes\t\(action.since)\t\(action.type)\t\(action.name)"
                )
            }
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

/// `journal quarantine drop`: forgets an action.
struct QuarantineDrop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Forget an action: it passes, and two crashes set it aside again.")

    @OptionGroup var options: SettingsOptions

    @Argument(help: "The name of the action, as list shows it.")
    var id: String

    func run() async throws {
        do {
            try await QuarantineTool(options).drop(id)
            print("dropped: \(id)")
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

/// `journal quarantine retry`: lets an action pass on trial.
struct QuarantineRetry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Let an action pass; one crash sets it aside again.")

    @OptionGroup var options: SettingsOptions

    @Argument(help: "The name of the action, as list shows it.")
    var id: String

    func run() async throws {
        do {
            try await QuarantineTool(options).retry(id)
            print("may pass: \(id)")
        } catch {
            throw Failure.ending(with: error)
        }
    }
}

extension QuarantineTool {
    /// Makes a tool for the journal that a command names.
    ///
    /// - Throws: `JournalError` where there is none, as the other commands for journals do.
    fileprivate init(_ options: SettingsOptions) async throws {
        let settings = try await options.read().settings
        try self.init(settings: settings)
        try JournalReader.check(settings.data)
    }
}
