internal import ArgumentParser
internal import FoundationEssentials
internal import Logging
internal import Models
internal import Queries
internal import StateJSON
internal import StateServer
internal import StateStore

struct ModelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "model", abstract: "Check or test a state and its reducers in JavaScript.",
        subcommands: [ModelCheck.self, ModelTest.self, ModelTypes.self])
}

struct ModelCheck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Load a model, run each reducer once with an example, and print what there is.")

    @Argument(help: "A JavaScript file in the shape of Redux Toolkit.")
    var file: String

    private struct Faults: Error, CustomStringConvertible {
        var all: [Model.Fault]
        var description: String { all.map(\.description).joined(separator: "\nError: ") }
    }

    func run() async throws {
        let model = try ModelFile.load(file)
        _ = try model.checks(ModelFile.check)
        let description = model.description
        let slices = description.slices.map { "\($0.name) at \($0.mount)" }.joined(separator: ", ")
        let tried = model.tried()
        let faults = tried.compactMap { if case .failure(let fault) = $0.outcome { fault } else { nil } }
        guard faults.isEmpty else { throw Faults(all: faults) }
        print("slices: \(slices); the initial state has \(description.initialBytesCount) bytes")
        for trial in tried { if case .success(let outcome) = trial.outcome { print("\(trial.type): \(outcome)") } }
        for view in description.views {
            let reads = view.reads.map { " reads \($0.joined(separator: ", "))" } ?? ""
            print("view \(view.name)\(reads): \(try model.initialView(view))")
        }
        for line in model.takeConsole() { print("console \(line)") }
        let partial = tried.filter { !$0.isWhole }.map(\.type).joined(separator: ", ")
        if !partial.isEmpty {
            print("warning: these reducers stop at the example, and the rest of them is not checked: \(partial)")
            print("storekeeper model test runs the rest, by a test with a state and a payload that pass")
        }
    }
}

struct ModelTypes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "types", abstract: "Print the types of what a model can import, for editors.",
        discussion: "storekeeper model types >storekeeper.d.ts, beside the model, and // @ts-check in its first line.")

    func run() async throws { print(Model.types, terminator: "") }
}

struct ModelTest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Run a model's tests: a JSON object a line.",
        discussion: """
            {"action":{"type":"counter/add","payload":{"amount":2}},"expect":{"counter":{"value":2}}}
            {"state":{"counter":{"value":1}},"action":{...},"rejected":"counter.negative"}
            {"action":{"type":"counter/add","payload":{}},"rejected":"invalid-action"}
            {"actions":[{...},{...}],"path":"/counter/value","expect":3}
            {"state":{...},"view":"double","expect":6}
            {"state":{...},"view":"open","parameters":{"owner":"ann"},"subject":"ann","expect":[...]}
            {"state":{...},"from":1,"expect":{...}}   a state of version 1, behind migrate
            {"action":{...},"schedule":[{"action":{...},"after":60,"name":"a"},{"unschedule":"b"}]}
            """)

    @Argument(help: "A JavaScript file in the shape of Redux Toolkit.")
    var file: String

    @Argument(help: "A file of tests, JSON Lines.")
    var tests: String

    func run() async throws {
        let model = try ModelFile.load(file)
        let checks = try model.checks(ModelFile.check)
        var (passed, failed) = (0, 0)
        let bytes = JSONText.withoutByteOrderMark(try ModelFile.bytes(tests))
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) {
            let failure: String?
            do throws(Model.Fault) {
                failure = model.failure(of: try Model.Test(Array(line)), checks: checks)
            } catch { failure = "\(error)" }
            passed += failure == nil ? 1 : 0
            failed += failure == nil ? 0 : 1
            if let failure { print("\(tests):\(index + 1): \(failure)") }
        }
        print("\(passed) passed, \(failed) failed")
        if failed > 0 { throw ExitCode.failure }
    }
}

enum ModelFile {
    static func bytes(_ path: String) throws(SettingsFault) -> [UInt8] {
        do {
            return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw SettingsFault("the file \(path) cannot be read")
        }
    }

    static func load(_ path: String) throws -> Model { try Model(try bytes(path), name: name(path)) }

    static func domain(_ settings: Settings) throws(SettingsFault) -> any Domain {
        let logger = Logger(label: "storekeeper.model")
        let (path, dropped) = (settings.model, settings.dropSlice)
        let serving = Model.Serving(
            read: { () throws(Model.Fault) in
                do throws(SettingsFault) {
                    return try bytes(path)
                } catch { throw Model.Fault(error.description) }
            }, name: name(path), time: .milliseconds(settings.modelMilliseconds), bytesMax: settings.modelBytesMax,
            dropped: dropped == "none" ? [] : dropped.split(separator: ",").map { JSONPointer([String($0)]) },
            check: { (name, schema) throws(Model.Fault) in
                try made(name, schema) { logger.log(.warning, "formats are not checked", ["formats": $0]) }
            },
            report: { logger.log($0) })
        do throws(Model.Fault) {
            return try ServedModel(serving)
        } catch {
            throw SettingsFault("the model cannot be served: \(error)")
        }
    }

    static func check(_ name: String, _ schema: JSONValue) throws(Model.Fault) -> Model.Serving.Faults {
        try made(name, schema) { print("warning: formats are not checked: \($0)") }
    }

    private static func made(
        _ name: String, _ schema: JSONValue, warn: (String) -> Void
    ) throws(Model.Fault) -> Model.Serving.Faults {
        do throws(JSONSchema.Fault) {
            let schema = try JSONSchema(schema)
            if !schema.unknownFormats.isEmpty { warn("\(name): \(schema.unknownFormats.joined(separator: ", "))") }
            return { schema.faults(of: $0, before: $1) }
        } catch { throw Model.Fault("\(name): \(error)") }
    }

    static func name(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }
}

extension Logger {
    fileprivate func log(_ event: Model.Serving.Event) {
        switch event {
        case .console(let text): log(.info, "console", ["text": text])
        case .failed(let reason): log(.error, "model failed", ["reason": reason])
        case .lacks(let members, let code):
            let reason =
                "the recorded state is older than they are, and a reducer that reads one gets undefined; to add them: \(code)"
            log(
                .warning, "state lacks members of initialState",
                [
                    "members": members.map(\.description).joined(separator: ", "), "reason": reason,
                ])
        }
    }
}
