internal import ArgumentParser
internal import StateJSON
internal import StateJournal
internal import StateStore

struct JournalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "journal", abstract: "Operate a journal, in a directory or in etcd.",
        subcommands: [
            JournalInfo.self, JournalVerify.self, JournalBackup.self, JournalRestore.self, JournalCopy.self,
            JournalCompact.self, JournalExport.self, JournalImport.self, JournalReplay.self, JournalBisect.self,
            QuarantineCommand.self,
        ])
}

struct JournalExport: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a state and the commits after it as JSON Lines, also while a server is running.")

    @OptionGroup var options: SettingsOptions

    @Option(help: "The version to begin with; by default the oldest state that has all commits after it.")
    var since: UInt64?

    func run(_ reading: SettingsReading) async throws {
        let output = StandardOutput()
        try reading.settings.journalPlace.export(since: since) { try output.write($0) }
        try output.flush()
    }
}

struct JournalImport: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a journal from the lines of export on standard input, with the same commits.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let input = StandardInput()
        let span = try reading.settings.journalPlace.load { try input.nextLine() }
        print("imported: \(span.sentence)")
    }
}

struct JournalReplay: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Make a journal from the lines of export on standard input, by today's reducers.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let input = StandardInput()
        let settings = try Program.current.settings(of: reading)
        let (domain, name) = (try Program.current.served(settings).domain, Program.current.domainName(settings))
        let span = try settings.journalPlace.replay(domain, named: name) { try input.nextLine() }
        print("replayed: \(span.sentence)")
    }
}

struct JournalBisect: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "bisect",
        abstract: "Print the first commit after which a test of a value holds, also while a server is running.",
        discussion: "For example: journal bisect --path /tasks/ids --repeats")

    @OptionGroup var options: SettingsOptions

    @Option(help: "A JSON Pointer into the state.")
    var path: String

    @Option(help: "The value equals this JSON. Without any test: there is a value.")
    var equals: String?

    @Option(help: "The value is a number, and not below this one.")
    var atLeast: String?

    @Option(help: "The value is a number, and not above this one.")
    var atMost: String?

    @Flag(help: "The value is an array in which two elements are equal.")
    var repeats = false

    @Flag(name: .customLong("not"), help: "The opposite of the test: there is no value, or no two elements are equal.")
    var isNegated = false

    @Option(help: "The version at which the test does not hold yet; by default the oldest that is kept.")
    var since: UInt64?

    func run(_ reading: SettingsReading) async throws {
        let test = try test()
        let (found, looks) = try reading.settings.journalPlace.bisect(test, from: since)
        switch found {
        case .success(let line): print(String(decoding: line, as: UTF8.self), terminator: "")
        case .failure(.holdsAtStart): throw Failure("the test holds already at the beginning (\(looks) looks)")
        case .failure(.neverHolds): throw Failure("the test does not hold at the end (\(looks) looks)")
        }
    }

    private func test() throws(SettingsFault) -> ValueTest {
        guard let pointer = JSONPointer(text: path) else {
            throw SettingsFault("--path: \(JSONPointer.expectation(of: path))")
        }
        let given = [("--equals", equals), ("--at-least", atLeast), ("--at-most", atMost)]
            .compactMap { name, text in text.map { (name, $0) } }
        guard let (name, text) = given.first else {
            return ValueTest(pointer, repeats ? .repeats(!isNegated) : .exists(!isNegated))
        }
        guard given.count == 1, !repeats, !isNegated else {
            throw SettingsFault("\(name) cannot be combined with another test, --repeats or --not")
        }
        let value = try? JSONValue(parsing: Array(text.utf8))
        switch (name, value) {
        case ("--equals", let value?): return ValueTest(pointer, .equals(value))
        case ("--at-least", let value?) where value.isNumber: return ValueTest(pointer, .atLeast(value))
        case ("--at-most", let value?) where value.isNumber: return ValueTest(pointer, .atMost(value))
        case ("--equals", nil):
            throw SettingsFault("--equals is not JSON: a text needs quotes, as in '\"done\"'")
        default: throw SettingsFault("\(name) takes a number")
        }
    }
}

struct JournalVerify: SettingsCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Run today's reducers on the recorded actions and name the first difference; changes nothing.")

    @OptionGroup var options: SettingsOptions

    @Flag(help: "Verify the index of IDs and the table of idempotency keys, too.")
    var deep = false

    @Flag(help: "Verify the chain of the commits and their patches alone, which takes no domain.")
    var chain = false

    func run(_ reading: SettingsReading) async throws {
        let place = try reading.settings.journalPlace
        let domain: (any Domain)? =
            try chain ? nil : Program.current.served(Program.current.settings(of: reading)).domain
        // A journal that cannot be read is one of another error.
        let saysWhose = (try? place.domain) != nil
        let span: JournalSpan
        do {
            span = try place.verify(domain, deep ? .deep : .plain)
        } catch let fault as HistoryFault where !chain && !saysWhose {
            throw Failure(
                "\(fault); this journal does not name its domain, so this may be the wrong one: name it with --domain, --model or --config, or use --chain, which needs no domain"
            )
        }
        print("verified: \(span.sentence)")
        switch span.reducedAfter {
        case nil: print("only the chain and the patches: no reducer has run")
        case let version? where version > span.start:
            print(
                "versions \(span.start) to \(version) are from before a migration: their chain and patches are right, and no reducer has run on them"
            )
        default: break
        }
        guard span.damagedSnapshots.isEmpty else {
            throw Failure(span.damagedSnapshots.map(JournalError.damagedSnapshot).joined(separator: "\nError: "))
        }
    }
}

extension JournalSpan {
    var sentence: String { "versions \(start) to \(end), \(commitsCount) commits" }
}
