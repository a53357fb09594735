internal import Configuration
internal import FoundationEssentials
internal import Logging
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import SystemPackage

/// A fault in the configuration, with a sentence for the operator.
public struct SettingsFault: Error, Sendable, CustomStringConvertible {
    /// What is wrong, in which source, and what was expected.
    public var description: String

    /// Makes a fault with its sentence.
    public init(description: String) { self.description = description }
}

/// Settings with the source of each value.
public struct SettingsReading: Sendable {
    /// The effective values.
    public var settings = Settings()
    /// The source of each value, by key: `default`, the path of the file, the name of the variable, or `flag`.
    public var origins: [String: String] = [:]

    /// Reads a file, then the environment, then flags; a later source beats an earlier one.
    ///
    /// - Parameters:
    ///   - file: the path of a JSON file, or nil for none.
    ///   - environment: the variables, or nil for those of the process; each name that begins with `STOREKEEPER_` must be a
    ///     setting.
    ///   - flags: the values of the command line, by key.
    /// - Throws: ``SettingsFault`` for a file that cannot be read, an unknown key, or a value out of its range.
    public init(
        file: String? = nil, environment: [String: String]? = nil, flags: [String: String] = [:]
    ) async throws {
        let environment = environment ?? ProcessInfo.processInfo.environment
        try Self.checkNames(
            environment.keys.filter { $0.hasPrefix("STOREKEEPER_") }, known: Setting.all.map(\.environmentName),
            place: "the environment")
        var providers: [(String, any ConfigProvider)] = [
            (
                "flag",
                InMemoryProvider(
                    name: "flags",
                    values: Dictionary(
                        uniqueKeysWithValues: flags.map {
                            (AbsoluteConfigKey([$0]), ConfigValue(.string($1), isSecret: false))
                        }))
            ),
            (
                "environment",
                EnvironmentVariablesProvider(environmentVariables: environment).prefixKeys(with: "storekeeper")
            ),
        ]
        if let file {
            try Self.checkKeys(of: file)
            do {
                providers.append((file, try await FileProvider<JSONSnapshot>(filePath: FilePath(file))))
            } catch {
                throw SettingsFault(description: "the configuration file \(file) cannot be read: \(error)")
            }
        }
        for setting in Setting.all {
            origins[setting.key] = "default"
            for (origin, provider) in providers {
                guard let value = try Self.value(of: setting, from: provider, origin) else { continue }
                settings[setting.key] = value
                origins[setting.key] = origin == "environment" ? setting.environmentName : origin
                break
            }
        }
        if settings.integer("wait_seconds_default") > settings.integer("wait_seconds_max") {
            throw SettingsFault(description: "wait_seconds_default must not be above wait_seconds_max")
        }
        // What makes no sense is found before anything is opened.
        _ = try settings.listeningPlaces()
        _ = try settings.trustedProxies()
        _ = try settings.allowedNames()
        _ = try settings.signatureVerifier()
        guard Logger.Level(rawValue: settings.text("log_level")) != nil else {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw SettingsFault(description: "log_level must be one of \(levels)")
        }
        if let fault = settings.allowedOrigins.origins.lazy.compactMap(AllowedOrigins.fault).first {
            throw SettingsFault(description: "allowed_origins: \(fault)")
        }
        guard ["auto", "open", "tokens"].contains(settings.text("access")) else {
            throw SettingsFault(description: "access must be auto, open or tokens")
        }
        guard settings.integer("memory_bytes_max") / 16 >= settings.integer("body_bytes_max") else {
            throw SettingsFault(
                description:
                    "memory_bytes_max must be at least 16 times body_bytes_max: a body needs so much while it is read")
        }
        let connections = settings.integer("connections_max")
        if connections > 0, origins["waiters_max"] != "default", settings.integer("waiters_max") >= connections {
            throw SettingsFault(
                description:
                    "waiters_max must be below connections_max: a waiting request holds its connection, and actions need some too"
            )
        }
    }

    private static func value(
        of setting: Setting, from provider: any ConfigProvider, _ origin: String
    ) throws -> Setting.Value? {
        let key = AbsoluteConfigKey([setting.key])
        switch setting.initial {
        case .text:
            guard let text = try? provider.value(forKey: key, type: .string).value else { return nil }
            guard case .string(let string) = text.content, !string.isEmpty else {
                throw SettingsFault(description: "\(setting.key) (\(origin)) must be a text")
            }
            return .text(string)
        case .integer:
            // Flags and variables hold strings, a file holds numbers. A provider throws where it has the other kind, so the
            // error only leads to the next attempt.
            let number: Int? =
                switch (try? provider.value(forKey: key, type: .int).value)?.content {
                case .int(let number)?: number
                default:
                    switch (try? provider.value(forKey: key, type: .string).value)?.content {
                    case .string(let text)?: Int(text) ?? .min
                    default: (try? provider.value(forKey: key, type: .string)) == nil ? .min : nil
                    }
                }
            guard let number else { return nil }
            guard setting.range.contains(number) else { throw setting.outOfRange(origin) }
            return .integer(number)
        }
    }

    /// Throws for a key that is no setting, and for a value of another type than its setting has.
    private static func checkKeys(of file: String) throws {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw SettingsFault(
                description: "the configuration file \(file) cannot be read: is it there, and may this user read it?")
        }
        let value: JSONValue
        do {
            value = try JSONValue(parsing: [UInt8](data))
        } catch let fault {
            throw SettingsFault(description: "the configuration file \(file) is not JSON: \(fault.detail)")
        }
        guard case .object(let object) = value else {
            throw SettingsFault(description: "the configuration file \(file) must hold one JSON object")
        }
        try checkNames(object.members.map(\.key), known: Setting.all.map(\.key), place: file)
        // The provider has nothing for a value of another type, as for a key that is missing, and converts some.
        for (key, value) in object.members {
            guard let setting = Setting.all.first(where: { $0.key == key }) else { continue }
            switch (setting.initial, value) {
            case (.text, .string), (.integer, .integer): break
            case (.text, _): throw SettingsFault(description: "\(key) (\(file)) must be a text")
            case (.integer, _): throw setting.outOfRange(file)
            }
        }
    }

    /// Throws for a name that is no setting, and suggests the most similar setting.
    private static func checkNames(_ names: [String], known: [String], place: String) throws {
        for name in names.sorted() where !known.contains(name) {
            // The case of a name is no difference in its letters.
            let isUpperCase = known.first.map { $0 == $0.uppercased() } ?? false
            let spelled = isUpperCase ? name.uppercased() : name.lowercased()
            let hint = NearestNames.of(spelled, among: known).first.map { "; did you mean \($0)?" } ?? ""
            throw SettingsFault(description: "\(place) has \(name), which is not a setting\(hint)")
        }
    }
}

extension Setting {
    /// The fault of a value that is no number or is out of the range.
    fileprivate func outOfRange(_ origin: String) -> SettingsFault {
        SettingsFault(
            description: "\(key) (\(origin)) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
}
