internal import FoundationEssentials
internal import Logging
internal import StateHTTP
internal import StateJSON
internal import StateStore

/// A fault in the configuration, with a sentence for the operator.
public struct SettingsFault: Error, Sendable, CustomStringConvertible {
    /// The fault, its source, and the expected value, in a sentence.
    public var description: String
    var isOfDisk = false

    /// Makes a fault with its sentence.
    public init(description: String) { self.description = description }

    package init(_ sentence: String) { self.init(description: sentence) }
}

/// Settings with the source of each value.
public struct SettingsReading: Sendable {
    /// The effective values.
    public var settings = Settings()
    /// The source of each value, by key: `default`, the path of the file, the name of the variable, or `flag`.
    package var origins: [String: String] = [:]
    /// The variables that Kubernetes has set for a Service whose name begins with `storekeeper`, in order; they set nothing.
    var ignoredVariables: [String] = []
    let declared: [DeclaredSetting]

    /// Reads a file, then the environment, then flags; a later source beats an earlier one.
    ///
    /// - Parameters:
    ///   - own: the program's own settings, as members of ``SettingKeys``, such as `[\.warehouse]`.
    ///   - file: the path of a JSON file, or nil for none.
    ///   - environment: the variables, or nil for those of the process; each name that begins with `STOREKEEPER_` must be a
    ///     setting, or one that Kubernetes makes of a Service's name.
    ///   - flags: the values of the command line, by key.
    /// - Throws: ``SettingsFault`` for a file that cannot be read, an unknown key, or a value that its setting does not take.
    public init(
        own: [PartialKeyPath<SettingKeys>] = [], file: String? = nil, environment: [String: String]? = nil,
        flags: [String: String] = [:]
    ) async throws {
        try self.init(
            DeclaredSetting.all(with: own), file: file,
            environment: environment ?? ProcessInfo.processInfo.environment, flags: flags)
    }

    init(
        _ declared: [DeclaredSetting], file: String?, environment: [String: String], flags: [String: String]
    ) throws(SettingsFault) {
        self.declared = declared
        let known = declared.map(\.environmentName)
        let ignored = environment.keys.filter { !known.contains($0) && Self.isOfKubernetes($0) }.sorted()
        ignoredVariables = ignored
        try Self.checkNames(
            environment.keys.filter { $0.hasPrefix("STOREKEEPER_") && !ignored.contains($0) }, known: known,
            place: "the environment")
        let values = if let file { try Self.values(of: file, declared) } else { [String: String]() }
        for setting in declared {
            let variable = setting.environmentName
            origins[setting.key] = "default"
            for case (let source, let origin, let text?) in [
                ("flag", "flag", flags[setting.key]), ("environment", variable, environment[variable]),
                (file ?? "", file ?? "", values[setting.key]),
            ] {
                guard let value = setting.checked(text) else { throw setting.misfit(source) }
                settings[setting] = value
                origins[setting.key] = origin
                break
            }
        }
        try check()
    }

    private func check() throws(SettingsFault) {
        if settings.waitSecondsDefault > settings.waitSecondsMax {
            throw SettingsFault("wait_seconds_default must not be above wait_seconds_max")
        }
        _ = (try settings.listeningPlaces(), try settings.proxies(), try settings.allowedNames())
        if settings.jwtGrant != "none",
            [settings.jwtIssuer, settings.jwtAudience].contains("any") || settings.jwtKeys == "none"
        {
            throw SettingsFault(
                "jwt_grant is for every token of one issuer that was made for this server, so it needs jwt_keys, jwt_issuer and jwt_audience"
            )
        }
        if let fault = settings.pageOrigins.origins.lazy.compactMap(AllowedOrigins.fault).first {
            throw SettingsFault("allowed_origins: \(fault)")
        }
        guard settings.memoryBytesMax / 16 >= settings.bodyBytesMax else {
            throw SettingsFault(
                "memory_bytes_max must be at least 16 times body_bytes_max: a body needs so much while it is read")
        }
        let connections = settings.connectionsMax
        if connections > 0, origins["waiters_max"] != "default", settings.waitersMax >= connections {
            throw SettingsFault(
                "waiters_max must be below connections_max: a waiting request holds its connection, and actions need some too"
            )
        }
    }

    /// The values of a file by key; one of another type than its setting is a fault, also where another source beats it.
    private static func values(
        of file: String, _ declared: [DeclaredSetting]
    ) throws(SettingsFault) -> [String: String] {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw SettingsFault(
                "the configuration file \(file) cannot be read: is it there, and may this user read it?")
        }
        let value: JSONValue
        do {
            value = try JSONValue(parsing: JSONText.withoutByteOrderMark([UInt8](data)))
        } catch let fault {
            throw SettingsFault("the configuration file \(file) is not JSON: \(fault.detail)")
        }
        guard case .object(let object) = value else {
            throw SettingsFault("the configuration file \(file) must hold one JSON object")
        }
        try checkNames(object.members.map(\.key), known: declared.map(\.key), place: file)
        var values: [String: String] = [:]
        for setting in declared {
            switch (setting.kind, object[setting.key]) {
            case (_, nil): break
            case (.text, .string(let text)?): values[setting.key] = text
            case (.number, .integer(let number)?): values[setting.key] = "\(number)"
            case (.boolean, .bool(let isTrue)?): values[setting.key] = "\(isTrue)"
            default: throw setting.misfit(file)
            }
        }
        return values
    }

    /// Whether Kubernetes makes such a variable of a Service's name, such as `STOREKEEPER_PORT=tcp://10.96.0.7:80`.
    private static func isOfKubernetes(_ name: String) -> Bool {
        let ofAnAddress = /STOREKEEPER(_.+)?_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?/
        return name.wholeMatch(of: /STOREKEEPER(_.+)?_SERVICE_(HOST|PORT(_.+)?)/) != nil
            || name.wholeMatch(of: ofAnAddress) != nil
    }

    private static func checkNames(_ names: [String], known: [String], place: String) throws(SettingsFault) {
        for name in names.sorted() where !known.contains(name) {
            let isUpperCase = known.first.map { $0 == $0.uppercased() } ?? false
            let spelled = isUpperCase ? name.uppercased() : name.lowercased()
            let hint = NearestNames.hint(spelled, among: known)
            throw SettingsFault("\(place) has \(name), which is not a setting\(hint)")
        }
    }
}

extension DeclaredSetting {
    static func all(with own: [PartialKeyPath<SettingKeys>]) throws(SettingsFault) -> [DeclaredSetting] {
        var all = SettingKeys.all
        for path in own {
            guard let setting = (SettingKeys.shared[keyPath: path] as? any SettingDeclaration)?.declared else {
                throw SettingsFault("\(path) leads to no Setting")
            }
            guard setting.key.wholeMatch(of: /[a-z0-9_]+/) != nil else {
                throw SettingsFault(
                    "the key \(setting.key) of a setting has characters other than lower-case letters, digits and _"
                )
            }
            guard !all.contains(where: { $0.key == setting.key }) else {
                throw SettingsFault("there are two settings with the key \(setting.key)")
            }
            guard setting.checked(setting.initial) != nil else { throw setting.misfit("default") }
            all.append(setting)
        }
        return all
    }
}
