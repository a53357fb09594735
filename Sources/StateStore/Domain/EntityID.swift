/// The ID of an entity, with exactly one spelling as a key of a JSON object.
///
/// A wrapper type around an `Int` or a `String` only needs the two conformances:
///
/// ```swift
/// struct TaskID: RawRepresentable, EntityID { let rawValue: Int }
/// ```
public protocol EntityID: Codable, Sendable {
    /// The spelling as a JSON key.
    var token: String { get }
    /// Reads a spelling; the result is nil when no ID has it.
    init?(token: String)
    /// The key by which a table sorts and compares IDs; by default the spelling.
    ///
    /// IDs with the same key are the same ID.
    var key: EntityKey { get }
    /// Makes the ID of a ``key``; the result is nil when no ID has this key.
    init?(key: EntityKey)
}

/// The key by which a table sorts its entities: numbers by size, then texts by their UTF-8 bytes.
///
/// Swift's order of strings does not serve: two Unicode spellings of one accented letter are one string in Swift, and two
/// keys in JSON.
public enum EntityKey: Comparable, Sendable {
    /// The key of an ID that is a number.
    case number(Int)
    /// The key of any other ID.
    case text(String)

    package var token: String {
        switch self {
        case .number(let number): String(number)
        case .text(let text): text
        }
    }

    /// Whether the left key comes first.
    public static func < (left: EntityKey, right: EntityKey) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left < right
        case (.text(let left), .text(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        case (.number, .text): true
        case (.text, .number): false
        }
    }

    /// Whether both keys are the same number, or texts of the same bytes.
    public static func == (left: EntityKey, right: EntityKey) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left == right
        case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}

extension EntityID {
    /// The text of the spelling.
    public var key: EntityKey { .text(token) }
    /// Reads the spelling of a key.
    public init?(key: EntityKey) { self.init(token: key.token) }
}

extension EntityID where Self: RawRepresentable, RawValue: EntityID {
    /// The spelling of the raw value.
    public var token: String { rawValue.token }
    /// Reads a raw value's spelling.
    public init?(token: String) {
        guard let raw = RawValue(token: token) else { return nil }
        self.init(rawValue: raw)
    }
    /// The key of the raw value.
    public var key: EntityKey { rawValue.key }
    /// Makes the ID of a raw value's key.
    public init?(key: EntityKey) {
        guard let raw = RawValue(key: key) else { return nil }
        self.init(rawValue: raw)
    }
}

extension Int: EntityID {
    /// The decimal digits, after a minus sign for a negative number.
    public var token: String { String(self) }
    /// Reads digits as ``token`` writes them: without a plus sign or leading zeros.
    public init?(token: String) {
        let digits = token.utf8.first == UInt8(ascii: "-") ? token.utf8.dropFirst() : token.utf8[...]
        guard let first = digits.first, first != UInt8(ascii: "0") || token.utf8.count == 1,
            first != UInt8(ascii: "+")
        else { return nil }
        self.init(token)
    }
    /// The number itself.
    public var key: EntityKey { .number(self) }
    /// Reads the number of a key; the result is nil for a text.
    public init?(key: EntityKey) {
        guard case .number(let number) = key else { return nil }
        self = number
    }
}

extension String: EntityID {
    /// The string itself.
    public var token: String { self }
    /// Reads any string.
    public init?(token: String) { self = token }
    /// The text of the string.
    public var key: EntityKey { .text(self) }
    /// Reads the text of a key; the result is nil for a number.
    public init?(key: EntityKey) {
        guard case .text(let text) = key else { return nil }
        self = text
    }
}
