internal import ArgumentParser
internal import FoundationEssentials
internal import StateHTTP
internal import StateJSON
internal import StateStore

struct HookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hook", abstract: "Make, list or change the hooks of a server, also while it is running.",
        subcommands: [
            HookCreate.self, HookList.self, HookPause.self, HookResume.self, HookRotate.self, HookDelete.self,
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

    @OptionGroup var options: JournalFileOptions

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

    func run(_ reading: SettingsReading) async throws {
        let settings = reading.settings
        let grant = Grant(read: read, dispatch: dispatch, others: true)
        let types = types.flatMap { $0.split(separator: ",").map(String.init) }
        // Without a history the hook begins where that will; behind one that cannot be read it would get all of it.
        let journal = try JournalPlace(settings.data, settings)
        let history = try journal?.hasHistory == true ? journal?.history() : nil
        let entry = HookEntry(
            url: url, types: types, path: path, grant, fields: header,
            since: history.map { Cursor($0.epoch, $0.latest).description })
        if let fault = grant.newFault ?? entry.fault { throw SettingsFault(fault) }
        guard insecure || !HookURL.isInsecure(url) else {
            throw SettingsFault(
                "\(url) is not https: everybody on the way could read and change the deliveries; --insecure allows it"
            )
        }
        let catalogue = Program.current.catalogue(of: reading)
        try settings.hookFile().change { (entries) throws(SettingsFault) in
            guard entries?.count ?? 0 < HookEntry.hooksMax else {
                throw SettingsFault("a server has at most \(HookEntry.hooksMax) hooks; delete one first")
            }
            entries = (entries ?? []) + [entry]
        }
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

    @OptionGroup var options: JournalFileOptions

    func run(_ reading: SettingsReading) async throws {
        let settings = reading.settings
        let entries = try settings.hookFile().read() ?? []
        guard !entries.isEmpty else { return Failure.say("There are no hooks.") }
        let progress = try settings.hookProgressFile().read().hooks
        // The list is shown also where the history is not there, or cannot be read.
        let history = try? JournalPlace(settings.data, settings)?.history()
        let latest = history.map { Cursor($0.epoch, $0.latest) }
        let catalogue = Program.current.catalogue(of: reading)
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

struct SomeHooks: ParsableArguments {
    @Argument(help: "The name of the hook, as hook list prints it.")
    var id: String?

    @Flag(help: "All hooks.")
    var all = false

    func validate() throws {
        guard (id != nil) != all else { throw ValidationError("name a hook, or --all") }
    }
}

struct HookPause: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop a hook, or all; its commits wait, as long as they are kept.")

    @OptionGroup var options: JournalFileOptions
    @OptionGroup var hooks: SomeHooks

    func run(_ reading: SettingsReading) async throws {
        try reading.settings.hookFile().change(hooks.id) { $0.paused = $0.paused ?? "by hand" }
        print("paused: \(hooks.id ?? "all")")
    }
}

struct HookResume: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Let a hook go on at once, or all: where it stopped, or with a commit.",
        discussion: """
            Its refused answers leave the list. With an earlier commit it sends that one again, and all behind it, with \
            the IDs of before: for idempotency_seconds, a day by default, actions that are committed are not committed \
            again. With a later commit it passes over those before.
            """)

    @OptionGroup var options: JournalFileOptions
    @OptionGroup var hooks: SomeHooks

    @Option(help: "The cursor of the next commit to send.")
    var from: String?

    func validate() throws {
        guard from == nil || hooks.id != nil else { throw ValidationError("--from is for one hook") }
    }

    func run(_ reading: SettingsReading) async throws {
        try from.map { try Self.check($0, in: reading.settings) }
        let time = RFC3339.text(milliseconds: Timestamp.now().milliseconds)
        let known = try reading.settings.hookProgressFile().read().hooks
        try reading.settings.hookFile().change(hooks.id) { entry in
            // An order with a commit that no server has carried out yet stays.
            let carriedOut = known.first { $0.id == entry.id }?.resent
            let pending = entry.resend.flatMap { $0.time == carriedOut ? nil : $0.from }
            (entry.paused, entry.resend) = (nil, .init(from: from ?? pending, time: time))
        }
        print("resumed: \(hooks.id ?? "all")" + (from.map { ", from \($0)" } ?? ""))
    }

    /// The commit behind the newest one is there, too: who passes over the newest one waits for it.
    private static func check(_ text: String, in settings: Settings) throws {
        guard let cursor = Cursor(text: text) else {
            throw SettingsFault("\(text) is not the cursor of a commit, such as akem2szdfs5zt65l.12")
        }
        guard let history = try JournalPlace(settings.data, settings)?.history(), cursor.epoch == history.epoch,
            cursor.version > (try history.oldest()), cursor.version <= history.latest + 1
        else { throw SettingsFault("the journal has no commit \(text), or keeps it no longer") }
    }
}

struct HookRotate: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Give a hook a second secret and print it; with --finish, drop the older one.",
        discussion: "In between, each delivery has a signature by each of the two.")

    @OptionGroup var options: JournalFileOptions
    @OptionGroup var hook: NamedHook

    @Flag(help: "Drop the older secret: the receiver knows the new one.")
    var finish = false

    func run(_ reading: SettingsReading) async throws {
        let (id, finish, secret) = (hook.id, finish, HookSecret().text)
        try reading.settings.hookFile().change(id) { (entry: inout HookEntry) throws(SettingsFault) in
            guard (entry.secrets.count == 2) == finish else {
                throw SettingsFault(
                    finish
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

    @OptionGroup var options: JournalFileOptions
    @OptionGroup var hook: NamedHook

    func run(_ reading: SettingsReading) async throws {
        try reading.settings.hookFile().remove(hook.id)
        print("deleted: \(hook.id)")
    }
}

extension Settings {
    fileprivate func hookFile() throws -> HookFile {
        HookFile(try hookDocument(HookEntry.key, name: HookEntry.name))
    }

    fileprivate func hookProgressFile() throws -> HookProgressFile {
        HookProgressFile(try hookDocument(HookProgressFile.key, name: HookProgressFile.name))
    }

    private func hookDocument(_ key: String, name: String) throws -> any SharedDocument {
        guard let place = try JournalPlace(self.data, self) else {
            throw SettingsFault(
                "hooks go on where they have stopped, so they need a journal: name a directory with --data"
            )
        }
        return try place.document(key, name: name)
    }
}

extension HookEntry {
    func condition(_ progress: HookProgress?, _ latest: Cursor?) -> String {
        var words: [String] = []
        if let paused { words.append("paused: \(paused)") }
        if let failing = progress?.failing {
            words.append(
                "failing at \(failing.cursor): \(failing.reason), \(failing.attempts) attempts since \(failing.since), next at \(failing.next)"
            )
        }
        if let refusals = progress?.refusals {
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
