internal import Documents
internal import Logging
internal import Queries
internal import StateJSON
internal import StateServer
internal import StateStore

enum DocumentSchema {
    /// A nil `source` reads the schema.
    static func domain(_ settings: Settings, source: [UInt8]? = nil) throws(SettingsFault) -> Document {
        guard settings.schema != "none" else { return Document() }
        let file = settings.schema
        let bytes = if let source { source } else { try ModelFile.bytes(file) }
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue(parsing: JSONText.withoutByteOrderMark(bytes))
        } catch {
            throw SettingsFault("the schema \(settings.schema) is not JSON: \(error.pointer): \(error.detail)")
        }
        let schema: JSONSchema
        do throws(JSONSchema.Fault) {
            schema = try JSONSchema(value)
        } catch {
            throw SettingsFault("the schema \(settings.schema): \(error)")
        }
        if !schema.unknownFormats.isEmpty {
            Logger(label: "storekeeper.schema").log(
                .warning, "formats are not checked", ["formats": schema.unknownFormats.joined(separator: ", ")])
        }
        // The first document is the default of the schema, or the empty object. A new history begins only if it fits.
        var initial = JSONValue.object(JSONObject())
        if case .object(let members) = value, let given = members["default"] { initial = given }
        return Document(
            initial: initial, schema: value, check: { schema.faults(of: $0, before: $1, most: 1).first },
            reload: { state in
                let read = try ModelFile.bytes(file)
                guard read != bytes else { return .unchanged }
                do {
                    _ = try CompiledDomain(try domain(settings, source: read)).resumed(from: state.text)
                } catch let misfit as JSONFault {
                    throw SettingsFault(
                        "the document does not fit the schema \(file): at \(misfit.place) \(misfit.detail)"
                    )
                }
                return .needsRestart
            })
    }
}
