/// The settings of a server, each with a default.
///
/// ``SettingKeys`` has the members, such as `settings.listen = "127.0.0.1:0"`; `config/storekeeper.json` lists their keys.
@dynamicMemberLookup
public struct Settings: Sendable {
    private var values: [String: SettingValue] = [:]

    /// Makes settings with the default values.
    public init() {}

    /// The value of a setting.
    ///
    /// A value that is set in code is taken as it is: ``SettingsReading`` alone looks at ranges.
    public subscript<Value>(dynamicMember key: KeyPath<SettingKeys, Setting<Value>>) -> Value {
        get {
            let setting = SettingKeys.shared[keyPath: key]
            return values[setting.declared.key].flatMap(setting.read) ?? setting.initial
        }
        set {
            let setting = SettingKeys.shared[keyPath: key]
            values[setting.declared.key] = setting.write(newValue)
        }
    }

    subscript(setting: DeclaredSetting) -> SettingValue {
        get { values[setting.key] ?? setting.initial }
        set { values[setting.key] = newValue }
    }
}
