internal import ArgumentParser
internal import FoundationEssentials
internal import StateCluster
internal import StateJournal
internal import StateStore

struct JournalInfo: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Print what the journal has, also while a server is running; verifies nothing.")

    @OptionGroup var options: SettingsOptions

    @Flag(help: "Write a JSON object.")
    var json = false

    func run(_ reading: SettingsReading) async throws {
        let facts =
            switch try reading.settings.journalPlace {
            case .directory(let path): try JournalFacts(directory: path, at: .now())
            case .cluster(let address): try JournalFacts(address, at: .now())
            }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        if json { return print(String(decoding: try encoder.encode(facts), as: UTF8.self)) }
        for case (let name, let value?) in Self.lines(of: facts) {
            print(name + String(repeating: " ", count: 21 - name.utf8.count) + value)
        }
    }

    private static func lines(of facts: JournalFacts) -> [(String, String?)] {
        let fence = facts.fence.map { fence in
            [fence.stage, fence.version.map { "version \($0)" }, fence.term.map { "term \($0)" }].compactMap(\.self)
        }
        let files = (facts.files ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, "\($0.value) bytes") }
        return [
            ("format", "\(facts.format)"), ("epoch", facts.epoch), ("domain", facts.domain),
            ("latest version", facts.versions.map { "\($0.latest)" }),
            ("oldest state", facts.versions.map { "\($0.oldestState)" }),
            ("oldest commit", facts.versions.map { "\($0.oldestCommit)" }),
            ("commits", facts.commits.map { "\($0)" }),
            ("snapshots", facts.snapshots?.map { "\($0.version) (\($0.bytes) bytes)" }.joined(separator: ", ")),
            ("idempotency keys", facts.keys.map { "\($0)" }),
            ("turns", facts.turns.map { "\($0.count) (\($0.bytes) bytes)" }),
            ("revision of etcd", facts.revision.map { "\($0)" }), ("etcds", facts.etcds?.description),
            ("fence", fence?.joined(separator: ", ")),
        ] + files + [("in use", facts.isInUse.map { $0 ? "yes" : "no" })]
    }
}

struct JournalBackup: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copy the journal to a directory, also while a server is running.",
        discussion:
            "The journal is verified, and the copy is made whole or not at all. The copy keeps the epoch. It is not read again: journal verify does that."
    )

    @OptionGroup var options: SettingsOptions

    @Option(help: "A directory without a journal, which is made where there is none; or a new name in etcd.")
    var to: String

    func run(_ reading: SettingsReading) async throws {
        let place = try reading.settings.journalPlace
        let span = try place.copy(to: JournalPlace(of: to, reading.settings), keepsEpoch: true)
        if case .directory(let path) = place { DirectoryFigures.noteBackup(of: path) }
        print("backed up: \(span.sentence), epoch \(span.epoch.text)")
    }
}

struct JournalRestore: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Make a journal from a backup, under a new epoch.",
        discussion: "The journal has the states, commits, IDs and idempotency keys of the backup.")

    @OptionGroup var options: SettingsOptions

    @Option(help: "The directory of the backup, or its address in etcd; it stays as it is.")
    var from: String

    @Flag(
        help: ArgumentHelp(
            "Keep the epoch: nothing was committed after the backup.",
            discussion: "If there were later commits, clients would take new commits for those that they have seen."))
    var sameEpoch = false

    func run(_ reading: SettingsReading) async throws {
        let backup = try JournalPlace(of: from, reading.settings)
        if sameEpoch { try backup.refuseInUse() }
        let span = try backup.copy(to: reading.settings.journalPlace, keepsEpoch: sameEpoch)
        print("restored: \(span.sentence), epoch \(span.epoch.text)")
        guard let tokens = try reading.settings.tokenFile(), try tokens.read() == nil else { return }
        print(
            "no tokens: there is no \(tokens.fullPath), and without it a server on loopback asks nobody for a token; copy the one of the old directory before the start"
        )
    }
}

struct JournalCopy: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy", abstract: "Move the journal to another place, from a directory into etcd or back.",
        discussion:
            "The copy is made whole or not at all. It keeps the epoch, so cursors and idempotency keys stay valid, and it has the tokens. Stop every server of the journal first, and start servers on the copy afterwards."
    )

    @OptionGroup var options: SettingsOptions

    @Option(help: "A directory without a journal, or etcd://host:port,host:port/name with a new name.")
    var to: String

    func run(_ reading: SettingsReading) async throws {
        let place = try reading.settings.journalPlace
        try place.refuseInUse()
        let other = try JournalPlace(of: to, reading.settings)
        let span = try place.copy(to: other, keepsEpoch: true)
        let documents = try place.copyDocuments(to: other).map { ", \($0)" }.joined()
        print("copied: \(span.sentence), epoch \(span.epoch.text)\(documents)")
    }
}

struct JournalCompact: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Drop the commits that retention does not keep and give the space back; no server may run.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let done = try SQLiteJournal.compact(
            directory: reading.settings.journalPlace.directory, retention: reading.settings.retention,
            at: .now())
        let dropped = done.oldestAfter - done.oldestBefore
        let damaged = done.damagedSnapshots.map { ", the damaged snapshot of version \($0) dropped" }.joined()
        print(
            "compacted: \(done.bytesBefore) bytes before, \(done.bytesAfter) after, \(dropped) commits dropped\(damaged)"
        )
    }
}
