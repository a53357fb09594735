internal import ArgumentParser
internal import FoundationEssentials
internal import StateJournal

/// `journal info`: says what a journal has.
struct JournalInfo: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Say what the journal has, also while a server is running; verifies nothing.")

    @OptionGroup var options: SettingsOptions

    @Flag(help: "Write a JSON object.")
    var json = false

    func run(_ reading: SettingsReading) async throws {
        let facts = try JournalFacts(directory: JournalTool(settings: reading.settings).directory, at: .now())
        guard json else { return print(facts.table) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        print(String(decoding: try encoder.encode(facts), as: UTF8.self))
    }
}

/// `journal backup`: copies the journal of a server that runs, or of one that is stopped.
struct JournalBackup: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copy the journal to another directory, also while a server is running.",
        discussion: "The copy is verified, and is there whole or not at all. It has the epoch of the journal.")

    @OptionGroup var options: SettingsOptions

    @Option(help: "A directory without a journal; it is made where there is none.")
    var to: String

    func run(_ reading: SettingsReading) async throws {
        let span = try JournalCopy.make(of: JournalTool(settings: reading.settings).directory, in: to)
        print("backed up: \(span.sentence), epoch \(span.epoch.text)")
    }
}

/// `journal restore`: makes a journal of a backup.
struct JournalRestore: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Make the journal of a backup, under a new epoch.",
        discussion: "The states, commits, IDs and idempotency keys are those of the backup.")

    @OptionGroup var options: SettingsOptions

    @Option(help: "The directory of the backup, which stays as it is.")
    var from: String

    @Flag(
        help: ArgumentHelp(
            "Keep the epoch: nothing was committed after the backup.",
            discussion: "With later commits, clients would take other ones for those that they have seen."))
    var sameEpoch = false

    func run(_ reading: SettingsReading) async throws {
        let directory = try JournalTool(settings: reading.settings).directory
        if sameEpoch { try JournalCopy.refuseInUse(from) }
        let span = try sameEpoch ? JournalCopy.make(of: from, in: directory) : JournalCopy.renew(from, in: directory)
        print("restored: \(span.sentence), epoch \(span.epoch.text)")
    }
}

/// `journal compact`: makes the file as small as the retention allows.
struct JournalCompact: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact", abstract: "Drop what the retention allows and give the space back; no server may run.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let done = try SQLiteJournal.compact(
            directory: JournalTool(settings: reading.settings).directory, retention: reading.settings.retention,
            at: .now())
        let dropped = done.oldestAfter - done.oldestBefore
        print("compacted: \(done.bytesBefore) bytes before, \(done.bytesAfter) after, \(dropped) commits dropped")
    }
}

extension JournalFacts {
    /// A line for each fact.
    fileprivate var table: String {
        var lines: [(String, String)] = [("format", "\(format)")]
        if let epoch { lines.append(("epoch", epoch)) }
        if let versions {
            lines.append(("latest version", "\(versions.latest)"))
            lines.append(("oldest state", "\(versions.oldestState)"))
            lines.append(("oldest commit", "\(versions.oldestCommit)"))
        }
        if let commits { lines.append(("commits", "\(commits)")) }
        if let snapshots {
            let list = snapshots.map { "\($0.version) (\($0.bytes) bytes)" }.joined(separator: ", ")
            lines.append(("snapshots", list))
        }
        if let keys { lines.append(("idempotency keys", "\(keys)")) }
        let details = [fence.version.map { "version \($0)" }, fence.term.map { "term \($0)" }].compactMap(\.self)
        lines.append(("fence", ([fence.stage] + details).joined(separator: ", ")))
        for (name, bytes) in files.sorted(by: { $0.key < $1.key }) { lines.append((name, "\(bytes) bytes")) }
        lines.append(("in use", isInUse ? "yes" : "no"))
        return lines.map { name, value in
            name + String(repeating: " ", count: 21 - name.utf8.count) + value
        }.joined(separator: "\n")
    }
}
