internal import Documents
internal import Logging
internal import Queries
internal import Showcase
internal import StateJSON
internal import StateServer
internal import StateStore

enum ServedDomain: String, CaseIterable {
    case canvas, counter, document, films, navigation, session, showcase, tasks

    static func made(_ settings: Settings) throws(SettingsFault) -> any Domain {
        if settings.model != "none", settings.domain != .document {
            throw SettingsFault("model and domain \(settings.domain.rawValue) are two domains; give one of them")
        }
        if settings.schema != "none", settings.model != "none" || settings.domain != .document {
            throw SettingsFault("schema is for the domain document, and another domain is to be served")
        }
        if settings.dropSlice != "none", settings.model == "none" {
            throw SettingsFault("drop_slice is for a model, and none is to be served")
        }
        if settings.model != "none" { return try ModelFile.domain(settings) }
        return switch settings.domain {
        case .canvas: Canvas()
        case .counter: Counter()
        case .document: try DocumentSchema.domain(settings)
        case .films: Films(fetch: try FilmsClient.fetch(settings))
        case .navigation: Navigation()
        case .session: Session()
        case .showcase: Showcase(fetchFilms: try FilmsClient.fetch(settings))
        case .tasks: Tasks()
        }
    }

    /// A model has the name of its file.
    static func name(_ settings: Settings) -> String {
        settings.model == "none" ? settings.domain.rawValue : modelPrefix + ModelFile.name(settings.model)
    }

    private static let modelPrefix = "model "

    static func adopt(_ recorded: String, _ reading: inout SettingsReading) throws {
        guard ["domain", "model"].allSatisfy({ reading.origins[$0] == "default" }) else { return }
        if let domain = ServedDomain(rawValue: recorded) {
            reading.settings.domain = domain
        } else if recorded.hasPrefix(modelPrefix) {
            throw SettingsFault(
                "the journal in \(reading.settings.data) is of the \(recorded): name its file with --model, or name another domain"
            )
        }
    }
}

extension SettingKeys {
    var domain: Setting<ServedDomain> {
        Setting("domain", default: .document, "the domain to serve: one JSON document, or an example in Swift")
    }

    var model: Setting<String> {
        Setting(
            "model", default: "none", "file with a state and its reducers in JavaScript, to serve instead of domain")
    }

    var modelMilliseconds: Setting<Int> {
        Setting(
            "model_milliseconds_max", default: 50, in: 1...10_000,
            "how long a reducer of a model may take of a processor; a view may take ten times as long")
    }

    var modelBytesMax: Setting<Int> {
        Setting(
            "model_bytes_max", default: 1 << 30, in: (1 << 20)...(1 << 40),
            "memory that the engine may have for a copy of a model's state; above it no action is taken")
    }

    var schema: Setting<String> {
        Setting("schema", default: "none", "file with the JSON Schema of the document, for domain document")
    }

    var dropSlice: Setting<String> {
        Setting(
            "drop_slice", default: "none",
            "slices of the recorded state that the model no longer has, separated by commas; their values are dropped")
    }

    var filmsBaseURL: Setting<String> {
        Setting("films_base_url", default: "none", "base URL of /films for the films domain; none fetches nothing")
    }

    var filmsTimeoutSeconds: Setting<Int> {
        Setting("films_timeout_seconds", default: 5, in: 1...600, "how long one fetch of the films may take")
    }

    var filmsRetries: Setting<Int> {
        Setting(
            "films_retries", default: 2, in: 0...10, "how often a fetch is repeated without an answer or after a 5xx")
    }
}

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
