import ArgumentParser
import Foundation
import Testing

@testable import StateServer

@Suite("The command line")
struct CommandTests {
    static func program(
        _ own: [PartialKeyPath<SettingKeys>] = [\.warehouse, \.pickersMax, \.isStrict, \.pace],
        version: String? = "1.2.3"
    ) throws -> Program {
        Program(
            name: "depot", version: version, settings: try DeclaredSetting.all(with: own),
            served: { _ in (Number(), []) })
    }

    static func parse(_ arguments: String...) throws -> any ParsableCommand {
        try Program.$current.withValue(program()) { try RootCommand.parseAsRoot(arguments) }
    }

    static let commands: [any ParsableCommand.Type] = [
        Serve.self, Check.self, Health.self, JournalInfo.self, JournalVerify.self, JournalBackup.self,
        JournalRestore.self, JournalCompact.self, JournalExport.self, JournalImport.self, JournalReplay.self,
        JournalBisect.self,
        QuarantineList.self, QuarantineDrop.self, QuarantineRetry.self, TokenCreate.self, TokenList.self,
        TokenRevoke.self, HookCreate.self, HookList.self, HookPause.self, HookResume.self,
        HookRotate.self,
        HookDelete.self,
    ]

    @Test("every setting is an option, and a program's own settings are options beside those of the package")
    func options() throws {
        let serve = try #require(
            try Self.parse("--warehouse", "north", "--pickers-max=7", "--grace-seconds", "3", "--is-strict", "true")
                as? Serve)

        let reading = try Program.$current.withValue(Self.program()) { try serve.options.read() }

        #expect((reading.settings.warehouse, reading.settings.pickersMax) == ("north", 7))
        #expect((reading.settings.graceSeconds, reading.settings.isStrict) == (3, true))
        #expect(reading.origins["warehouse"] == "flag")
    }

    @Test("--open is the value open of access")
    func open() throws {
        let check = try #require(try Self.parse("check", "--open") as? Check)

        let reading = try Program.$current.withValue(Self.program()) { try check.options.read() }

        #expect(reading.settings.access == .open)
    }

    @Test("the help lists the program's own settings, and those of the package where all are asked for")
    func help() throws {
        try Program.$current.withValue(Self.program()) {
            let plain = RootCommand.helpMessage(for: Serve.self, columns: 200)
            let whole = RootCommand.helpMessage(for: Serve.self, includeHidden: true, columns: 200)

            #expect(plain.contains("USAGE: depot serve"))
            #expect(plain.contains("--warehouse <text>"))
            #expect(plain.contains("The warehouse to serve; by default main."))
            #expect(plain.contains("How fast the pickers are, one of slow, fast; by default slow."))
            #expect(!plain.contains("--grace-seconds"))
            for setting in SettingKeys.all { #expect(whole.contains("--\(setting.optionName) "), "\(setting.key)") }
            #expect(RootCommand.configuration.version == "1.2.3")
        }
    }

    @Test("a program without a version of its own says whose version it names")
    func version() throws {
        let version = try Program.$current.withValue(Self.program(version: nil)) { RootCommand.configuration.version }

        #expect(version == "Storekeeper \(StateServer.version)")
    }

    @Test("a misspelled option is refused, in each command", arguments: ["serve", "check", "health"])
    func misspelled(command: String) {
        #expect(throws: (any Error).self) { try Self.parse(command, "--warehose", "north") }
        #expect(throws: Never.self) { try Self.parse(command, "--warehouse", "north") }
    }

    @Test("--port is answered with the option that is meant, and is an option where a setting has that name")
    func port() throws {
        let error = #expect(throws: (any Error).self) { try Self.parse("serve", "--port", "8081") }

        #expect(RootCommand.message(for: try #require(error)).contains("did you mean --listen 127.0.0.1:8081?"))
        #expect(RootCommand.exitCode(for: try #require(error)) == .validationFailure)
        #expect(throws: Never.self) {
            try Program.$current.withValue(Self.program([\.port])) {
                _ = try RootCommand.parseAsRoot(["serve", "--port", "8081"])
            }
        }
    }

    @Test("the names that a setting must not have are those of all other options")
    func names() throws {
        var names: Set<String> = []
        try Program.$current.withValue(Self.program([])) {
            for command in Self.commands {
                let help = RootCommand.helpMessage(for: command, includeHidden: true, columns: 200)
                names.formUnion(help.matches(of: /--([a-z-]+)/).map { String($0.1) })
            }
        }

        // ArgumentParser adds one that no help shows.
        names.insert("help-hidden")
        #expect(names.subtracting(SettingKeys.all.map(\.optionName)) == Program.optionNames)
    }

    @Test("a setting with the name of another option is refused")
    func conflict() throws {
        #expect(throws: SettingsFault.self) { try Self.program([\.subject]).checkOptionNames() }
        #expect(throws: Never.self) { try Self.program().checkOptionNames() }
    }

    @Test("a wrong setting ends with 78, a damaged journal with 65, anything else with 1")
    func exitCodes() throws {
        let fault = Failure.ending(with: SettingsFault(description: "a setting is wrong"))

        #expect(RootCommand.exitCode(for: fault) == ExitCode(78))
        #expect(RootCommand.exitCode(for: Failure.ending(with: Failure("no"))) == ExitCode(1))
        #expect(RootCommand.exitCode(for: Failure.ending(with: CancellationError())) == ExitCode(1))
    }
}

extension SettingKeys {
    var port: Setting<String> { Setting("port", default: "north", "a key of another domain") }
    var subject: Setting<String> { Setting("subject", default: "anybody", "a key that is the name of an option") }
}
