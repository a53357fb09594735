internal import ArgumentParser
internal import Glibc
internal import MicroHTTP
internal import StateCluster
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

struct Health: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask the server at the configured address whether it is ready.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        let place = try reading.settings.reachablePlace()
        let (host, name) =
            switch place {
            case .address(let host, let port): (host, "\(host) port \(port)")
            case .socket(let path, _): ("localhost", "the socket \(path)")
            }
        let descriptor = try place.connect(within: 5)
        guard descriptor >= 0 else {
            throw Failure("no server listens on \(name): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        let request = Array("GET /readyz HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw Failure("the request could not be sent: \(String(cString: strerror(errno)))")
        }
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw Failure("no answer within five seconds") }
        let line = String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        guard line.hasPrefix("HTTP/1.1 200") else { throw Failure("not ready: \(line)") }
        print("ready")
    }
}

struct Check: SettingsCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the effective settings, where each came from, and what is at the place of the journal.")

    @OptionGroup var options: SettingsOptions

    func run(_ reading: SettingsReading) async throws {
        _ = try Program.current.served(Program.current.settings(of: reading))
        let settings = reading.settings
        if settings.access != .open {
            // The tokens beside a journal in etcd are not read, because etcd may not answer.
            if settings.tokens != "data" || !ClusterAddress.isMeant(by: settings.data) {
                _ = try settings.tokenFile()?.read()
            }
            let faults = try settings.keyFile?.readAtStart()?.faults ?? []
            Failure.warn(faults.map { "key left out: \($0)" })
        }
        print("# journal: \(try JournalPlace(settings.data, settings)?.finding ?? "none")")
        for setting in reading.declared {
            let value = "\(setting.key) = \(setting.json(settings[setting]))"
            let padding = String(repeating: " ", count: max(1, 44 - value.count))
            print("\(value)\(padding)# \(reading.origins[setting.key] ?? "default")")
        }
    }
}

struct StandardInput {
    private let file: UnsafeMutablePointer<FILE>? = fdopen(STDIN_FILENO, "r")

    func nextLine() throws -> [UInt8]? {
        var line: UnsafeMutablePointer<CChar>?
        var size = 0
        defer { free(line) }
        let count = file.map { getline(&line, &size, $0) } ?? -1
        guard count >= 0 else {
            if let file, feof(file) != 0 { return nil }
            throw Failure("cannot read standard input: \(String(cString: strerror(errno)))")
        }
        let bytes = UnsafeRawBufferPointer(start: line, count: count)
        return Array(bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...])
    }
}

struct StandardOutput {
    private let file: UnsafeMutablePointer<FILE>? = fdopen(STDOUT_FILENO, "w")

    init() { if let file { setvbuf(file, nil, _IOFBF, 1 << 18) } }

    func write(_ bytes: [UInt8]) throws { try check(file.map { fwrite(bytes, 1, bytes.count, $0) } == bytes.count) }

    func flush() throws { try check(file.map(fflush) == 0) }

    private func check(_ isWritten: Bool) throws {
        guard isWritten else { throw Failure("cannot write to standard output: \(String(cString: strerror(errno)))") }
    }
}
