internal import ArgumentParser
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Make, list or revoke the tokens of a server, also while it is running.",
        subcommands: [TokenCreate.self, TokenList.self, TokenRevoke.self])
}

struct TokenCreate: SettingsCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "create", abstract: "Make a token and print it; only its hash is kept.",
            discussion: """
                For example: \(Program.current.name) token create --subject ci --read /tasks --dispatch 'tasks/*'

                It also takes every other setting of a server: with its --config, the names in --read and --dispatch are \
                compared with what the server's state has.
                """)
    }

    @OptionGroup var options: JournalFileOptions

    @Option(help: "Who will hold the token; commits name it.")
    var subject: String

    @Option(
        help:
            "What it may read: a JSON Pointer into the state, view:NAME, store:NAME, actions:TYPE, or * for everything. Repeatable."
    )
    var read: [String] = []

    @Option(help: "An action type that it may dispatch; a * at its end stands for any ending. Repeatable.")
    var dispatch: [String] = []

    @Flag(help: "It may see the actions of other subjects.")
    var others = false

    @Flag(help: "It may see metrics and operate the journal.")
    var operate = false

    @Flag(help: "It may make forks; needs --read '*' and --others.")
    var fork = false

    @Flag(help: "It may do everything.")
    var all = false

    @Option(help: "When it ends: a time such as 2030-01-31T12:00:00Z, or after a time such as 90d, 12h, 30m or 45s.")
    var expires: String?

    func run(_ reading: SettingsReading) async throws {
        let end = try expires.map { try Self.end($0, after: .now()) }
        let grant =
            all ? Grant.everything : Grant(read: read, dispatch: dispatch, others: others, operate: operate, fork: fork)
        if let fault = grant.newFault ?? Access.fault(inSubject: subject) { throw SettingsFault(fault) }
        let settings = reading.settings
        let token = Token()
        let entry = TokenEntry(
            token, subject: subject, grant, expires: end.map { RFC3339.text(milliseconds: $0.milliseconds) })
        let catalogue = Program.current.catalogue(of: reading)
        let ofGrant = catalogue.map { grant.warnings(in: $0) } ?? []
        var warnings: [String] = []
        let file = try settings.changedTokenFile()
        let readers = settings.readers(of: file)
        // In etcd a change is tried again when another one was faster.
        try file.change { entries in
            warnings = ofGrant
            if entries == nil, settings.access == .auto, settings.jwtKeys == "none" {
                warnings.append(
                    readers.isNone
                        ? "this is the first token: a server on loopback that starts with it asks each client for one"
                        : "this is the first token: a server on loopback without jwt_keys was open to every client, and now asks each for a token"
                )
            }
            let all = (entries ?? []) + [entry]
            entries = all
            warnings += settings.warningsWithoutAdministrator(all)
        }
        print(token.text)
        Failure.say(readers.sentence)
        Failure.warn(warnings)
    }

    static func end(_ text: String, after now: Timestamp) throws(SettingsFault) -> Timestamp {
        let units: [Character: Int64] = ["d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000]
        let milliseconds = Int32(text.dropLast()).flatMap { count in
            text.last.flatMap { units[$0] }.map { Int64(count) * $0 }
        }
        let end = milliseconds.map { now.milliseconds + $0 } ?? RFC3339.milliseconds(text) ?? 0
        if end > now.milliseconds, end <= DueTime.latest.milliseconds { return Timestamp(milliseconds: end) }
        let expected = "a time to come with its zone, such as 2030-01-31T12:00:00Z, or one such as 90d, 12h, 30m or 45s"
        throw SettingsFault("--expires must be \(expected)")
    }
}

struct TokenList: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each token: name, subject, time, and what it allows.")

    @OptionGroup var options: JournalFileOptions

    func run(_ reading: SettingsReading) async throws {
        let file = try reading.settings.changedTokenFile()
        guard let tokens = try file.read() else { return Failure.say("There is no token file \(file.fullPath).") }
        for token in tokens {
            let grant = token.grant
            let words =
                grant.read.map { "read=\($0)" } + grant.dispatch.map { "dispatch=\($0)" }
                + (grant.others ? ["others"] : []) + (grant.operate ? ["operate"] : []) + (grant.fork ? ["fork"] : [])
                + (token.expires.map { ["expires=\($0)"] } ?? [])
            print(token.id, token.subject, token.created, words.joined(separator: " "), separator: "  ")
        }
    }
}

struct TokenRevoke: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Remove a token, or all of a subject; their streams and waits end within a second.")

    @OptionGroup var options: JournalFileOptions

    @Argument(help: "The name of the token, as token list prints it.")
    var id: String?

    @Option(help: "All tokens of this subject.")
    var subject: String?

    func validate() throws {
        guard (id != nil) != (subject != nil) else { throw ValidationError("name a token, or its --subject") }
    }

    func run(_ reading: SettingsReading) async throws {
        let (id, named, settings) = (id, subject, reading.settings)
        let file = try settings.changedTokenFile()
        var warnings: [String] = []
        var revoked: [TokenEntry] = []
        do throws(SettingsFault) {
            try file.change { (entries) throws(SettingsFault) in
                warnings = []
                let isRevoked = { (entry: TokenEntry) in
                    id.map { $0 == entry.id } ?? (named.map { ExactText($0) } == ExactText(entry.subject))
                }
                let left = (entries ?? []).filter { !isRevoked($0) }
                revoked = (entries ?? []).filter(isRevoked)
                guard !revoked.isEmpty else {
                    throw SettingsFault(
                        "there is no token \(id ?? "of \(named ?? "")") in \(file.fullPath); `token list` shows them"
                    )
                }
                if left.isEmpty { warnings.append("no token is left; the server still asks every client for one") }
                warnings += settings.warningsWithoutAdministrator(left)
                entries = left
            }
        } catch {
            var fault = error
            if fault.isOfDisk { fault.description += "; the token is still good" }
            throw fault
        }
        for entry in revoked { print("revoked: \(entry.id)") }
        // Without a journal, and where it cannot be read now, nothing is known of what is scheduled.
        let subject = revoked[0].subject
        if let count = try? settings.journalPlace.scheduledCount(by: subject), count > 0 {
            print(
                "scheduled by \(subject): \(count); each is taken back with the last token of the subject, and else refused when it is due, unless another one allows it"
            )
        }
        Failure.say(settings.readers(of: file).sentence)
        Failure.warn(warnings)
    }
}

extension Settings {
    fileprivate func changedTokenFile() throws -> TokenFile {
        guard let file = try tokenFile() else {
            throw SettingsFault("there is no token file: name it with the setting tokens, or the data directory")
        }
        return file
    }

    fileprivate func readers(of file: TokenFile) -> (sentence: String, isNone: Bool) {
        guard self.tokens == "data", case .directory(let directory)? = try? JournalPlace(self.data, self) else {
            let setting = self.tokens == "data" ? "data is \(self.data)" : "tokens names this file"
            return ("\(file.fullPath): each server whose setting \(setting) reads it within a second.", false)
        }
        guard let process = JournalReader.user(of: directory) else {
            return (
                "Warning: no running server reads \(file.fullPath): none has this data directory. Name the directory of a running server with --data.",
                true
            )
        }
        let name = process == 0 ? "" : ", process \(process),"
        return ("\(file.fullPath): the server with this data directory\(name) reads it within a second.", false)
    }

    fileprivate func warningsWithoutAdministrator(_ entries: [TokenEntry]) -> [String] {
        guard self.access != .open, self.jwtKeys == "none", !entries.contains(where: \.grant.isEverything) else {
            return []
        }
        return ["no token can do everything; `token create --all` makes one that can"]
    }
}
