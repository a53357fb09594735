internal import StateJSON

/// The declaration of a setting: its key, default, values and purpose.
///
/// The key is that of the configuration file: lower-case letters, digits and underscores, with the unit at its end. The
/// environment variable is the key in capitals behind `STOREKEEPER_`, and the option of the command line has hyphens for the
/// underscores. Each source that has another value than the setting takes ends the start with a sentence.
public struct Setting<Value: Sendable>: Sendable {
    let declared: DeclaredSetting
    let initial: Value
    let read: @Sendable (SettingValue) -> Value?
    let write: @Sendable (Value) -> SettingValue

    private init(
        _ key: String, _ initial: Value, _ summary: String, _ expectation: String, _ kind: SettingValue.Kind,
        read: @escaping @Sendable (SettingValue) -> Value?, write: @escaping @Sendable (Value) -> SettingValue,
        takes: @escaping @Sendable (Value) -> Bool = { _ in true }
    ) {
        self.initial = initial
        self.read = read
        self.write = write
        declared = DeclaredSetting(
            key: key, initial: write(initial), summary: summary, expectation: expectation, kind: kind,
            takes: { read($0).map(takes) ?? false })
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
        self.init(
            key, initial, summary, expectation, .text, read: { $0.text }, write: { .text($0) }, takes: takes)
    }
}

extension Setting where Value == Int {
    /// Declares a setting that is a whole number in a range.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: Int, in range: ClosedRange<Int>, _ summary: String) {
        self.init(
            key, initial, summary, "a whole number from \(range.lowerBound) to \(range.upperBound)", .integer,
            read: { $0.integer }, write: { .integer($0) }, takes: range.contains)
    }
}

extension Setting where Value == Bool {
    /// Declares a setting that is true or false.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: Bool, _ summary: String) {
        self.init(
            key, initial, summary, "true or false", .boolean, read: { $0.boolean }, write: { .boolean($0) })
    }
}

extension Setting where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// Declares a setting that is one of the cases of an enumeration, by its raw value.
    ///
    /// - Parameter summary: what the setting is for, in a phrase; the help of the command line shows it.
    public init(_ key: String, default initial: Value, _ summary: String) {
        self.init(
            key, initial, summary, "one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))", .text,
            read: { $0.text.flatMap(Value.init(rawValue:)) }, write: { .text($0.rawValue) })
    }
}

enum SettingValue: Sendable, Equatable, CustomStringConvertible {
    enum Kind: Sendable { case integer, text, boolean }

    case integer(Int)
    case text(String)
    case boolean(Bool)

    var integer: Int? { if case .integer(let value) = self { value } else { nil } }
    var text: String? { if case .text(let value) = self { value } else { nil } }
    var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }

    var description: String {
        switch self {
        case .integer(let value): "\(value)"
        case .text(let value): String(decoding: JSONValue.string(value).text, as: UTF8.self)
        case .boolean(let value): "\(value)"
        }
    }

    var plain: String { text ?? description }
}

struct DeclaredSetting: Sendable {
    let key: String
    let initial: SettingValue
    let summary: String
    /// The values that the setting takes, as the end of a sentence.
    let expectation: String
    let kind: SettingValue.Kind
    let takes: @Sendable (SettingValue) -> Bool

    var environmentName: String { "STOREKEEPER_" + key.uppercased() }
    var optionName: String { key.replacing("_", with: "-") }

    func misfit(_ origin: String) -> SettingsFault {
        SettingsFault(description: "\(key) (\(origin)) must be \(expectation)")
    }
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
