internal import ArgumentParser
internal import FoundationEssentials

/// The options of every subcommand; the mirror names the settings, because ArgumentParser finds options by reflection.
struct SettingsOptions: SettingsSource, CustomReflectable {
    @Option(help: "A JSON file of settings; check lists them all.")
    var config: String?

    @Flag(help: "Let every client do everything, on any address, without a token.")
    var open = false

    /// The value of `--port`, an option of other servers, unless a setting of the program has that name.
    private var port: String?

    private var values: [String: String] = [:]

    private static let listed: Set<String> = ["listen", "data", "log_level"]

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        _config = try container.decode(Option<String?>.self, forKey: Key(stringValue: "config"))
        _open = try container.decode(Flag<Bool>.self, forKey: Key(stringValue: "open"))
        if Self.hintsAtListen {
            port = try container.decode(Option<String?>.self, forKey: Key(stringValue: "port")).wrappedValue
        }
        for setting in Program.current.settings {
            let option = try container.decode(Option<String?>.self, forKey: Key(stringValue: setting.key))
            values[setting.key] = option.wrappedValue
        }
    }

    private static var hintsAtListen: Bool { !Program.current.settings.contains { $0.optionName == "port" } }

    func validate() throws {
        guard let port else { return }
        throw ValidationError("there is no option --port; did you mean --listen 127.0.0.1:\(port)?")
    }

    var customMirror: Mirror { mirror(of: self) }

    func mirror(of subject: Any, listing listed: Set<String>? = nil) -> Mirror {
        let package = Set(SettingKeys.all.map(\.key))
        let options: [(String, Any)] = Program.current.settings.map { setting in
            let isShown =
                listed?.contains(setting.key)
                ?? (Self.listed.contains(setting.key) || !package.contains(setting.key))
            return (
                "_\(setting.key)", Option<String?>(name: .customLong(setting.optionName), help: setting.help(isShown))
            )
        }
        let port = Option<String?>(name: .customLong("port"), help: .private)
        let open = listed == nil ? _open : Flag(wrappedValue: false, help: .hidden)
        return Mirror(
            subject,
            children: [("_config", _config)] + options + [("_open", open)]
                + (Self.hintsAtListen ? [("_port", port)] : []))
    }

    func read() throws -> SettingsReading {
        var flags = values
        if open, let access = flags["access"], access != AccessPolicy.open.rawValue {
            throw SettingsFault(
                "--open means that no client needs a token, and --access \(access) means something else; give one of them"
            )
        }
        if open { flags["access"] = AccessPolicy.open.rawValue }
        let environment = ProcessInfo.processInfo.environment
        return try SettingsReading(Program.current.settings, file: config, environment: environment, flags: flags)
    }
}

struct JournalFileOptions: SettingsSource, CustomReflectable {
    private var options = SettingsOptions()

    init() {}

    init(from decoder: any Decoder) throws { options = try SettingsOptions(from: decoder) }

    func validate() throws { try options.validate() }

    func read() throws -> SettingsReading { try options.read() }

    var customMirror: Mirror { options.mirror(of: self, listing: ["data", "tokens"]) }
}

extension DeclaredSetting {
    fileprivate func help(_ isShown: Bool) -> ArgumentHelp {
        let choices = expectation.hasPrefix("one of ") ? ", \(expectation)" : ""
        return ArgumentHelp(
            "\(summary.prefix(1).uppercased())\(summary.dropFirst())\(choices); by default \(initial).",
            valueName: kind.rawValue, visibility: isShown ? .default : .hidden)
    }
}
