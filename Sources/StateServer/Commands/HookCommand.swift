internal import ArgumentParser
internal import FoundationEssentials
internal import StateHTTP
internal import StateJSON
internal import StateStore

struct HookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hook", abstract: "Make, list or change the hooks of a server, also while it is running.",
        subcommands: [
            HookCreate.self, HookList.self, HookPause.self, HookResume.self, HookSkip.self, HookResend.self,
            HookDismiss.self, HookRotate.self, HookDelete.self,
        ])
}

struct HookCreate: SettingsCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "create", abstract: "Make a hook and print its secret, which is shown only now.",
            discussion: """
                The server POSTs each new commit that the hook may see to the address. For example:
                \(Program.current.name) hook create --url https://example.org/hook --types 'deploys/*' --read '*'
                """)
    }

    @OptionGroup var place: TokenFileOptions

    @Option(help: "The address of the receiver, with https; http for one on this machine.")
    var url: String

    @Option(help: "Only commits with an action of this type; a * at its end stands for any ending. Repeatable.")
    var types: [String] = []

    @Option(help: "Only commits that change this part of the state: a JSON Pointer.")
    var path: String?

    @Option(
        help:
            "What the hook may see: a JSON Pointer into the state, actions:TYPE, or * for everything. It sees the actions of all subjects. Repeatable."
    )
    var read: [String] = []

    @Option(help: "An action type that its answers may dispatch; a * at its end stands for any ending. Repeatable.")
    var dispatch: [String] = []

    @Option(
        help: ArgumentHelp(
            "A header field of each delivery, such as 'Authorization: Basic ...'. Repeatable.",
            discussion: "It is kept in the file of the hooks, and nobody is shown it.", valueName: "name: value"))
    var header: [String] = []

    @Flag(help: "Allow an http address on another machine. Everybody on the way can read and change the deliveries.")
    var insecure = false

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        let settings = reading.settings
        let grant = Grant(read: read, dispatch: dispatch, others: true)
        let types = types.flatMap { $0.split(separator: ",").map(String.init) }
        // Without a history the hook begins where that will; behind one that cannot be read it would get all of it.
        let journal = try JournalPlace(settings.data, settings)
        let history = try journal?.hasHistory == true ? journal?.history() : nil
        let entry = HookFile.Entry(
            url: url, types: types, path: path, grant, fields: header,
            since: history.map { Cursor($0.epoch, $0.latest).description })
        if let fault = grant.newFault ?? entry.fault { throw SettingsFault(description: fault) }
        guard insecure || !HookURL.isInsecure(url) else {
            throw SettingsFault(
                description:
                    "\(url) is not https: everybody on the way could read and change the deliveries; --insecure allows it"
            )
        }
        // A hook needs no domain. Where that cannot be made, the start of the server says why.
        let catalogue = try? Program.current.served(Program.current.settings(of: reading)).catalogue()
        try settings.hookFile().add(entry)
        print(entry.id)
        print(entry.secrets[0])
        Failure.say("The receiver checks the signatures with this secret, which is shown only now.")
        Failure.say(
            entry.since.map { "It gets the commits behind \($0), the present one; older ones are not sent." }
                ?? "It gets every commit, from the first one on.")
        if let catalogue { Failure.warn(entry.warnings(in: catalogue)) }
    }
}

struct HookList: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each hook: name, address, how far it has come, what stops it.")

    @OptionGroup var place: TokenFileOptions

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        let settings = reading.settings
        let entries = try settings.hookFile().read()
        guard !entries.isEmpty else { return Failure.say("There are no hooks.") }
        let progress = try settings.hookProgressFile().read().hooks
        // The list is shown also where the history is not there, or cannot be read.
        let history = try? JournalPlace(settings.data, settings)?.history()
        let latest = history.map { Cursor($0.epoch, $0.latest) }
        let catalogue = try? Program.current.served(Program.current.settings(of: reading)).catalogue()
        for entry in entries {
            let known = progress.first { $0.id == entry.id }
            let words =
                entry.types.map { "type=\($0)" } + (entry.path.map { ["path=\($0)"] } ?? [])
                + entry.grant.read.map { "read=\($0)" } + entry.grant.dispatch.map { "dispatch=\($0)" }
                + (entry.fields ?? []).map { "header=\($0.prefix { $0 != ":" })" }
                + (entry.secrets.count > 1 ? ["secrets=2"] : [])
            let condition = entry.condition(known, latest)
            print(entry.id, entry.url, condition, words.joined(separator: " "), separator: "  ")
            if let catalogue { Failure.warn(entry.warnings(in: catalogue).map { "\(entry.id): \($0)" }) }
        }
    }
}

struct NamedHook: ParsableArguments {
    @Argument(help: "The name of the hook, as hook list prints it.")
    var id: String
}

struct HookPause: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop a hook, or all; its commits wait, as long as they are kept.")

    @OptionGroup var place: TokenFileOptions

    @Argument(help: "The name of the hook, as hook list prints it.")
    var id: String?

    @Flag(help: "All hooks.")
    var all = false

    var options: SettingsOptions { place.options }

    func validate() throws { try HookResume.check(id, all) }

    func run(_ reading: SettingsReading) async throws {
        let file = try reading.settings.hookFile()
        try file.change(id) { $0.paused = $0.paused ?? "by hand" }
        print("paused: \(id ?? "all")")
    }
}

struct HookResume: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Let a hook that is paused go on where it stopped, or all.")

    @OptionGroup var place: TokenFileOptions

    @Argument(help: "The name of the hook, as hook list prints it.")
    var id: String?

    @Flag(help: "All hooks.")
    var all = false

    var options: SettingsOptions { place.options }

    func validate() throws { try Self.check(id, all) }

    static func check(_ id: String?, _ all: Bool) throws {
        guard (id != nil) != all else { throw ValidationError("name a hook, or --all") }
    }

    func run(_ reading: SettingsReading) async throws {
        try reading.settings.hookFile().change(id) { $0.paused = nil }
        print("resumed: \(id ?? "all")")
    }
}

struct HookSkip: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "skip", abstract: "Skip the commit that a hook fails to deliver.")

    @OptionGroup var place: TokenFileOptions
    @OptionGroup var hook: NamedHook

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        let (id, settings) = (hook.id, reading.settings)
        let progress = try settings.hookProgressFile().read().hooks.first { $0.id == id }
        // One that fails at its own cursor fails to read the commits behind it.
        let failing = progress?.failing
        var skipped: String?
        try settings.hookFile().change(id) { (entry: inout HookFile.Entry) throws(SettingsFault) in
            guard let failing, failing.cursor != entry.skipped, failing.cursor != progress?.cursor else {
                throw SettingsFault(description: "the hook \(id) has no failing delivery; there is nothing to skip")
            }
            entry.skipped = failing.cursor
            skipped = failing.cursor
        }
        print("skipped: \(skipped ?? "")")
    }
}

struct HookResend: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "resend", abstract: "Send a commit again whose answer was refused, and all commits after it.",
        discussion: """
            They have the IDs of before: for idempotency_seconds, a day by default, actions that are committed are not \
            committed again.
            """)

    @OptionGroup var place: TokenFileOptions
    @OptionGroup var hook: NamedHook

    @Option(help: "The cursor of the first commit; by default that of the first refused answer.")
    var from: String?

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        let (id, settings) = (hook.id, reading.settings)
        let progress = try settings.hookProgressFile().read().hooks.first { $0.id == id }
        let now = Timestamp.now()
        let first = try from ?? firstRefused(of: progress, settings, at: now)
        guard let cursor = Cursor(text: first) else {
            throw SettingsFault(description: "\(first) is not the cursor of a commit, such as akem2szdfs5zt65l.12")
        }
        guard let history = try JournalPlace(settings.data, settings)?.history(), cursor.epoch == history.epoch,
            cursor.version > (try history.oldest()), cursor.version <= history.latest
        else { throw SettingsFault(description: "the journal has no commit \(first), or keeps it no longer") }
        try settings.hookFile().change(id) { (entry: inout HookFile.Entry) throws(SettingsFault) in
            entry.resend = .init(from: first, time: RFC3339.text(milliseconds: now.milliseconds))
            func isSentAgain(_ other: String?) -> Bool {
                other.flatMap { Cursor(text: $0) }.map { $0.version >= cursor.version } ?? false
            }
            if isSentAgain(entry.skipped) { entry.skipped = nil }
            // What is refused again is not dismissed.
            if isSentAgain(entry.dismissed) { entry.dismissed = nil }
        }
        print("sends again from: \(first)")
    }

    private func firstRefused(
        of progress: HookProgress?, _ settings: Settings, at now: Timestamp
    ) throws(SettingsFault) -> String {
        guard let refusals = progress?.refusals else {
            throw SettingsFault(description: "no answer to the hook \(hook.id) was refused; name a commit with --from")
        }
        let milliseconds = RFC3339.milliseconds(refusals.since) ?? 0
        guard Timestamp(milliseconds: milliseconds).advanced(by: .seconds(settings.idempotencySeconds)) > now else {
            throw SettingsFault(
                description: """
                    the commit \(refusals.first) is of \(refusals.since), and the server knows for \
                    \(settings.idempotencySeconds) s what it has committed: the actions of later answers could be \
                    committed again. --from \(refusals.first) sends them all the same; `hook dismiss` ends the list
                    """)
        }
        return refusals.first
    }
}

struct HookDismiss: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "dismiss", abstract: "Take the refused answers of a hook from the list; nothing is sent again.")

    @OptionGroup var place: TokenFileOptions
    @OptionGroup var hook: NamedHook

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        let (id, settings) = (hook.id, reading.settings)
        let refusals = try settings.hookProgressFile().read().hooks.first { $0.id == id }?.refusals
        try settings.hookFile().change(id) { (entry: inout HookFile.Entry) throws(SettingsFault) in
            guard let refusals, refusals.newest != entry.dismissed else {
                throw SettingsFault(description: "no answer to the hook \(id) was refused; there is nothing to dismiss")
            }
            entry.dismissed = refusals.newest
        }
        print("dismissed: \(id)")
    }
}

struct HookRotate: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Give a hook a second secret and print it; with --finish, drop the older one.",
        discussion: "In between, each delivery has a signature by each of the two.")

    @OptionGroup var place: TokenFileOptions
    @OptionGroup var hook: NamedHook

    @Flag(help: "Drop the older secret: the receiver knows the new one.")
    var finish = false

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        let (id, finish, secret) = (hook.id, finish, HookSecret().text)
        try reading.settings.hookFile().change(id) { (entry: inout HookFile.Entry) throws(SettingsFault) in
            guard (entry.secrets.count == 2) == finish else {
                throw SettingsFault(
                    description: finish
                        ? "the hook \(id) has one secret; `hook rotate \(id)` gives it a second one"
                        : "the hook \(id) has two secrets; `hook rotate \(id) --finish` drops the older one")
            }
            entry.secrets = finish ? [entry.secrets[0]] : [secret, entry.secrets[0]]
        }
        print(finish ? "rotated: \(id)" : secret)
    }
}

struct HookDelete: SettingsCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete a hook with its secret.")

    @OptionGroup var place: TokenFileOptions
    @OptionGroup var hook: NamedHook

    var options: SettingsOptions { place.options }

    func run(_ reading: SettingsReading) async throws {
        try reading.settings.hookFile().remove(hook.id)
        print("deleted: \(hook.id)")
    }
}

extension Settings {
    fileprivate func hookFile() throws(SettingsFault) -> HookFile {
        HookFile(try hookDocument(HookFile.key, name: HookFile.name))
    }

    fileprivate func hookProgressFile() throws(SettingsFault) -> HookProgressFile {
        HookProgressFile(try hookDocument(HookProgressFile.key, name: HookProgressFile.name))
    }

    private func hookDocument(_ key: String, name: String) throws(SettingsFault) -> any SharedDocument {
        guard let place = try JournalPlace(self.data, self) else {
            throw SettingsFault(
                description: "hooks go on where they have stopped, so they need a journal: name a directory with --data"
            )
        }
        return try place.document(key, name: name)
    }
}

extension HookFile {
    fileprivate func change(_ id: String?, _ body: (inout Entry) -> Void) throws(SettingsFault) {
        guard let id else { return try changeAll(body) }
        try change(id) { (entry: inout Entry) throws(SettingsFault) in body(&entry) }
    }
}

extension HookFile.Entry {
    func condition(_ progress: HookProgress?, _ latest: Cursor?) -> String {
        var words: [String] = []
        if let paused { words.append("paused: \(paused)") }
        if let failing = progress?.failing, failing.cursor != skipped {
            words.append(
                "failing at \(failing.cursor): \(failing.reason), \(failing.attempts) attempts since \(failing.since), next at \(failing.next)"
            )
        }
        if let refusals = progress?.refusals, refusals.newest != dismissed {
            words.append(
                (refusals.count == 1 ? "1 answer" : "\(refusals.count) answers, the first at \(refusals.first),")
                    + " refused, the newest at \(refusals.newest): \(refusals.reason)")
        }
        words.append(behind(progress, latest).map { $0 == 0 ? "up to date" : "\($0) behind" } ?? "not begun")
        return words.joined(separator: "; ")
    }

    /// How many versions the hook is behind the newest one; nil if it has not begun in this history.
    func behind(_ progress: HookProgress?, _ latest: Cursor?) -> Version? {
        guard let latest, let position = (progress?.cursor ?? since).flatMap({ Cursor(text: $0) }),
            position.epoch == latest.epoch
        else { return nil }
        return latest.version > position.version ? latest.version - position.version : 0
    }

    func warnings(in catalogue: Catalogue) -> [String] {
        let view = Contract(catalogue: catalogue).hookView(grant, subject: subject, path: pointer, types: types)
        let sees = types.isEmpty || view.filter.paths != .nothing
        return grant.warnings(in: catalogue, dispatching: catalogue.types)
            + (sees ? [] : ["the hook sees no action of the types; name them with --read, such as actions:\(types[0])"])
    }
}
