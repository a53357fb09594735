internal import ArgumentParser
internal import StateJournal

struct QuarantineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine",
        abstract: "List the actions and views that a server has set aside, or let them pass.",
        subcommands: [QuarantineList.self, QuarantineDrop.self, QuarantineRetry.self])
}

struct QuarantineList: SettingsCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the actions, oldest first.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        for action in try QuarantineFile(of: reading.settings).read() ?? [] {
            let state =
                switch action.state {
                case .quarantined: "refused"
                case .retry: "may pass"
                case .suspected: "suspected"
                }
            let words = [
                action.id, state, "\(action.crashes) crashes", action.since, action.type, action.identification,
            ]
            print(words.joined(separator: "\t"))
        }
    }
}

struct QuarantineDrop: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Forget an action: it passes, and two crashes set it aside again.")

    @OptionGroup var options: SettingsOptions

    @Argument(help: "The name of the action, as list shows it.")
    var id: String

    func run(_ reading: SettingsReading) async throws {
        try QuarantineFile(of: reading.settings).remove(id)
        print("dropped: \(id)")
    }
}

struct QuarantineRetry: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Let an action pass; one crash sets it aside again.")

    @OptionGroup var options: SettingsOptions

    @Argument(help: "The name of the action, as list shows it.")
    var id: String

    func run(_ reading: SettingsReading) async throws {
        try QuarantineFile(of: reading.settings).change(id) { $0.state = .retry }
        print("may pass: \(id)")
    }
}

extension QuarantineFile {
    fileprivate init(of settings: Settings) throws {
        let place = try settings.journalPlace
        if case .directory(let path) = place { try JournalReader.check(path) }
        self.init(try place.document(QuarantineEntry.key, name: QuarantineEntry.name))
    }
}
