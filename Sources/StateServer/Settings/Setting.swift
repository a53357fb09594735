internal import StateJSON

/// The declaration of a setting: its key, default, values and purpose.
///
/// The key is that of the configuration file: lower-case letters, digits and underscores, with the unit at its end. The
/// environment variable is the key in capitals behind `STOREKEEPER_`, and the option of the command line has hyphens for the
/// underscores. Each source that has another value than the setting takes ends the start with a sentence.
public struct Setting<Value: Sendable>: Sendable {
    let declared: DeclaredSetting
    let initial: Value
    let read: @Sendable (String) -> Value?
    let write: @Sendable (Value) -> String

    private init(
        _ kind: DeclaredSetting.Kind, _ key: String, _ initial: Value, _ summary: String, _ expectation: String,
        read: @escaping @Sendable (String) -> Value?, write: @escaping @Sendable (Value) -> String,
        takes: @escaping @Sendable (Value) -> Bool = { _ in true }
    ) {
        (self.initial, self.read, self.write) = (initial, read, write)
        declared = DeclaredSetting(
            key: key, kind: kind, initial: write(initial), summary: summary, expectation: expectation,
            checked: { read($0).flatMap { takes($0) ? write($0) : nil } })
    }
}

extension Setting where Value == String {
    /// Declares a setting that is a text, which is never empty.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: String, _ summary: String) {
        self.init(key, default: initial, summary, "a text that is not empty") { !$0.isEmpty }
    }

    init(
        _ key: String, default initial: String, _ summary: String, _ expectation: String,
        takes: @escaping @Sendable (String) -> Bool
    ) {
        self.init(.text, key, initial, summary, expectation, read: { $0 }, write: { $0 }, takes: takes)
    }
}

extension Setting where Value == Int {
    /// Declares a setting that is a whole number in a range.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: Int, in range: ClosedRange<Int>, _ summary: String) {
        self.init(
            .number, key, initial, summary, "a whole number from \(range.lowerBound) to \(range.upperBound)",
            read: { Int($0) }, write: { "\($0)" }, takes: range.contains)
    }
}

extension Setting where Value == Bool {
    /// Declares a setting that is true or false.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: Bool, _ summary: String) {
        self.init(.boolean, key, initial, summary, "true or false", read: { Bool($0) }, write: { "\($0)" })
    }
}

extension Setting where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// Declares a setting that is one of the cases of an enumeration, by its raw value.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: Value, _ summary: String) {
        self.init(
            .text, key, initial, summary, "one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))",
            read: Value.init(rawValue:), write: { $0.rawValue })
    }
}

struct DeclaredSetting: Sendable {
    enum Kind: String, Sendable {
        case number, text
        case boolean = "true|false"
    }

    let key: String
    let kind: Kind
    let initial: String
    let summary: String
    let expectation: String
    /// The text of a value in its one spelling; nil for what the setting does not take.
    let checked: @Sendable (String) -> String?

    var environmentName: String { "STOREKEEPER_" + key.uppercased() }
    var optionName: String { key.replacing("_", with: "-") }

    func json(_ value: String) -> String {
        kind == .text ? String(decoding: JSONValue.string(value).text, as: UTF8.self) : value
    }

    func misfit(_ origin: String) -> SettingsFault { SettingsFault("\(key) (\(origin)) must be \(expectation)") }
}

protocol SettingDeclaration: Sendable {
    var declared: DeclaredSetting { get }
}

extension Setting: SettingDeclaration {}

/// Which clients need a token.
public enum AccessPolicy: String, CaseIterable, Sendable {
    /// Each client does on any address but loopback, or once there is a token file or `jwt_keys`.
    case auto
    /// None does.
    case open
    /// Each one does.
    case tokens
}

/// The settings of a server, each with a default.
///
/// ``SettingKeys`` has the members, such as `settings.listen = "127.0.0.1:0"`; `config/storekeeper.json` lists their keys.
@dynamicMemberLookup
public struct Settings: Sendable {
    private var values: [String: String] = [:]

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

    subscript(setting: DeclaredSetting) -> String {
        get { values[setting.key] ?? setting.initial }
        set { values[setting.key] = newValue }
    }
}
