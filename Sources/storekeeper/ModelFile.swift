internal import FoundationEssentials
internal import Logging
internal import Models
internal import Queries
internal import StateJSON
internal import StateServer
internal import StateStore

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
