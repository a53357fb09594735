internal import ArgumentParser
internal import Glibc
internal import StateStore

protocol SettingsCommand: AsyncParsableCommand {
    associatedtype Options: SettingsSource
    var options: Options { get }

    func run(_ reading: SettingsReading) async throws
}

protocol SettingsSource: ParsableArguments {
    func read() throws -> SettingsReading
}

extension SettingsCommand {
    func run() async throws {
        do {
            try await run(options.read())
        } catch {
            StateLogHandler.flush()
            throw Failure.ending(with: error)
        }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    static func warn(_ sentences: [String]) {
        for sentence in sentences { say("Warning: \(sentence)") }
    }

    static func say(_ line: String) {
        let line = Array("\(line)\n".utf8)
        // The work is done, and the program ends well also where the line cannot be written.
        _ = write(STDERR_FILENO, line, line.count)
    }

    /// The error has the exit code of sysexits.h for what an operator has to mend before another start.
    static func ending(with error: any Error) -> any Error {
        let code: ExitCode
        switch error {
        case let error as ServerFault where error.cause == .damagedJournal: code = ExitCode(EX_DATAERR)
        case let error as SettingsFault where error.isOfDisk: code = ExitCode(EX_IOERR)
        case is SettingsFault, is DeclarationFault: code = ExitCode(EX_CONFIG)
        default: return error is Failure ? error : Failure("\(error)")
        }
        say("Error: \(error)")
        return code
    }
}
